import { createHash } from "node:crypto";
import type { Layer } from "./layer.ts";
import type { Arch } from "./platforms.ts";

/** A part of an image, by its digest. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: Arch; readonly os: "linux" };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What a container of the image starts as. */
export interface ImageStart {
  readonly arch: Arch;
  readonly title: string;
  readonly version: string;
  /** The program with its first arguments. */
  readonly entrypoint: readonly string[];
  /** Its further arguments, where a container names none. */
  readonly command: readonly string[];
  readonly uid: number;
}

/** An OCI image layout: files by their path. */
export type Layout = ReadonlyMap<string, Buffer>;

/** The image of one machine in a layout. */
export interface PackedImage {
  readonly manifest: Descriptor;
  readonly blobs: Layout;
}

const MEDIA = "application/vnd.oci.image";
/** There is no time of building, so that nothing but the contents decides the digest. */
const NEVER = "1970-01-01T00:00:00Z";

function store(blobs: Map<string, Buffer>, mediaType: string, content: Buffer): Descriptor {
  const hex = createHash("sha256").update(content).digest("hex");
  blobs.set(`blobs/sha256/${hex}`, content);
  return { mediaType, digest: `sha256:${hex}`, size: content.length };
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/**
 * Describe the image of one machine: its layers, configuration and manifest. Pure.
 * @source OCI image-spec 1.1, image configuration and image manifest
 */
export function packImage(layers: readonly Layer[], { arch, title, version, entrypoint, command, uid }: ImageStart): PackedImage {
  const blobs = new Map<string, Buffer>();
  const labels = {
    "org.opencontainers.image.title": title,
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": "Apache-2.0",
  };
  const config = {
    created: NEVER,
    architecture: arch,
    os: "linux",
    config: {
      User: `${uid}:${uid}`,
      Env: ["PATH=/usr/sbin:/usr/bin", "NODE_ENV=production"],
      Entrypoint: entrypoint,
      Cmd: command,
      WorkingDir: "/",
      Labels: labels,
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => `sha256:${diffId}`) },
    history: layers.map(() => ({ created: NEVER, created_by: "npm run image" })),
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: `${MEDIA}.manifest.v1+json`,
    config: store(blobs, `${MEDIA}.config.v1+json`, json(config)),
    layers: layers.map(({ blob }) => store(blobs, `${MEDIA}.layer.v1.tar+gzip`, blob)),
    annotations: labels,
  };
  const stored = store(blobs, manifest.mediaType, json(manifest));
  return { manifest: { ...stored, platform: { architecture: arch, os: "linux" } }, blobs };
}

/**
 * Make the layout of an image of one machine or several, with the name that containerd, podman and skopeo give it. Pure.
 *
 * Edges: with several, an index stands between; whoever imports it chooses the image of the own machine.
 * @param reference e.g. `turnout.local/turnout-nft:dev`
 */
export function imageLayout(images: readonly PackedImage[], reference: string): { readonly layout: Layout; readonly digest: string } {
  const blobs = new Map(images.flatMap(({ blobs: own }) => [...own]));
  const [only] = images;
  const index = { schemaVersion: 2, mediaType: `${MEDIA}.index.v1+json`, manifests: images.map(({ manifest }) => manifest) };
  const top = images.length === 1 && only !== undefined ? only.manifest : store(blobs, index.mediaType, json(index));
  const annotations = {
    "io.containerd.image.name": reference,
    "org.opencontainers.image.ref.name": reference.slice(reference.lastIndexOf(":") + 1),
  };
  const layout = new Map([
    ["oci-layout", json({ imageLayoutVersion: "1.0.0" })],
    ["index.json", json({ ...index, manifests: [{ ...top, annotations }] })],
    ...[...blobs].toSorted(([a], [b]) => (a < b ? -1 : 1)),
  ]);
  return { layout, digest: top.digest };
}

import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

/** One way to run Turnout: an overlay of kustomize, and the values with which the chart makes the same. */
export interface Variant {
  readonly name: string;
  readonly values: { readonly backend: string; readonly layout: string };
}

/** Where the manifests are in the checkout. */
export const MANIFESTS = "deploy/kubernetes";
/** Where what they are rendered to is kept, below {@link MANIFESTS}. */
export const RENDERED = "rendered";
/** Says of which sources the kept ones are, and by what. */
export const RENDERED_OF: string = join(RENDERED, "sources.json");

/** All that are rendered, by the folder of their overlay. */
export const VARIANTS: readonly Variant[] = [
  ...["nft", "iptables", "ipvs", "ebpf", "userspace", "all"].map((backend) => ({ name: backend, values: { backend, layout: "node" } })),
  ...["split", "central"].map((layout) => ({ name: `${layout}-nft`, values: { backend: "nft", layout } })),
];

/** The overlay that removes what Turnout wrote; the chart has none. */
export const CLEANUP = "cleanup";

/** An object of Kubernetes, unread. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** Read a file of manifests. @throws {Error} what the YAML parser says. */
export function readManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((one) => {
    const [error] = one.errors;
    if (error !== undefined) throw error;
    const value = one.toJS() as Manifest | null;
    return value === null ? [] : [value];
  });
}

/** Put manifests into an order that no tool decides. Pure. */
export function inOrder(manifests: readonly Manifest[]): readonly Manifest[] {
  const key = ({ kind, metadata }: Manifest): string => `${kind}/${metadata.name}`;
  return manifests.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** Lines of Chart.yaml that nothing is rendered with, and that each release changes. */
const VERSIONS_OF_CHART = /^(?:version|appVersion): .*$/gm;

/** Sum up all that is rendered from: SHA-256 of names and contents, in hex. */
export function sourcesChecksum(root: string): string {
  const folder = join(root, MANIFESTS);
  const files = globSync("**/*.{yaml,json,tpl}", { cwd: folder, exclude: [`${RENDERED}/**`] }).toSorted();
  const hash = createHash("sha256");
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(folder, file), "utf8").replace(VERSIONS_OF_CHART, ""))
      .update("\0");
  return hash.digest("hex");
}

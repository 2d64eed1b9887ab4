import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkTree } from "./check-tree.ts";
import { entrypointOf } from "./command-tree.ts";
import type { FileTree } from "./file-tree.ts";
import { joinTrees } from "./file-tree.ts";
import { imageTrees, readElfEntry, readText } from "./image-trees.ts";
import type { Sources } from "./image-trees.ts";
import { licenceProblems } from "./licences.ts";
import { packLayer, packLayerOnce, writeArchive } from "./layer.ts";
import { imageLayout, packImage } from "./oci.ts";
import { PLATFORMS } from "./platforms.ts";
import type { Arch } from "./platforms.ts";
import type { Recipe } from "./recipes.ts";

/** How an image is named, and where it is written to. */
export interface ImagePlace {
  /** E.g. `turnout.local`, or a registry with a folder. */
  readonly registry: string;
  readonly tag: string;
  readonly folder: string;
}

/** An image that was written. */
export interface BuiltImage {
  /** What a pod names. */
  readonly reference: string;
  /** The archive of its layout. */
  readonly path: string;
  /** Of its manifest, or of the index of several. */
  readonly digest: string;
  /** Bytes of all layers as they are stored, for each machine. */
  readonly storedBytes: Readonly<Partial<Record<Arch, number>>>;
  /** Bytes of all files, for each machine. */
  readonly filesBytes: Readonly<Partial<Record<Arch, number>>>;
  /** All files, for each machine. */
  readonly trees: ReadonlyMap<Arch, FileTree>;
}

/**
 * Make an image for some machines, and write it as one archive, with a bill of materials for each machine beside it.
 *
 * Edges: the layers below the command are kept in the sources' cache, by their contents.
 * @throws {Error} what is missing or doesn't belong there, by name; what apt-get, npm and tar say.
 */
export function buildImage(recipe: Recipe, archs: readonly Arch[], place: ImagePlace, sources: Sources): BuiltImage {
  mkdirSync(place.folder, { recursive: true });
  const { repository, title, command, uid } = recipe;
  const parts = archs.map((arch) => {
    const { base, tools, command: own, bill, version } = imageTrees(recipe, PLATFORMS[arch], sources);
    const tree = joinTrees(base, tools, own);
    const problems = [...checkTree(tree, PLATFORMS[arch], readElfEntry), ...licenceProblems(tree, bill, readText)];
    if (problems.length > 0) throw new Error(`${repository} for ${arch}: ${problems.join("; ")}`);
    const kept = join(sources.cache, "layers");
    const layers = [packLayerOnce(base, kept), packLayerOnce(tools, kept), packLayer(own)];
    writeFileSync(join(place.folder, `${repository}-${arch}.cdx.json`), bill);
    return { arch, tree, layers, image: packImage(layers, { arch, title, version, entrypoint: entrypointOf(sources.root), command, uid }) };
  });
  const reference = `${place.registry}/${repository}:${place.tag}`;
  const { layout, digest } = imageLayout(
    parts.map(({ image }) => image),
    reference,
  );
  const path = join(place.folder, `${repository}-${archs.join("-")}.tar`);
  writeArchive(path, new Map([...layout].map(([name, content]) => [`/${name}`, { kind: "file", mode: 0o644, content }])));
  const sums = (bytes: (layer: (typeof parts)[0]["layers"][0]) => number): Readonly<Partial<Record<Arch, number>>> =>
    Object.fromEntries(parts.map(({ arch, layers }) => [arch, layers.reduce((sum, layer) => sum + bytes(layer), 0)]));
  return {
    reference,
    path,
    digest,
    storedBytes: sums(({ blob }) => blob.length),
    filesBytes: sums(({ filesBytes }) => filesBytes),
    trees: new Map(parts.map(({ arch, tree }) => [arch, tree])),
  };
}

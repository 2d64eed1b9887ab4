import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Platform } from "./platforms.ts";

/** The images: one for each backend, one for the node-state server, one with all backends. */
export type ImageName = "all" | "nft" | "iptables" | "ipvs" | "ebpf" | "userspace" | "serve";

/** What a backend takes from Debian. Libraries that its programs are linked with are found by themselves, in these packages. */
export interface Tools {
  readonly packages: readonly string[];
  /** Programs and links to them, by their path in the package. */
  readonly programs: readonly string[];
  /** Links of our own: where, and to what. */
  readonly links: Readonly<Record<string, string>>;
  /** Libraries that are opened at run time, by file name. */
  readonly opened: readonly string[];
  /** Folders of plug-ins, below the folder of libraries. */
  readonly plugins: readonly string[];
}

/** What an image is made of. */
export interface Recipe {
  readonly name: ImageName;
  /** The image's name in a registry. */
  readonly repository: string;
  readonly title: string;
  readonly tools: readonly Tools[];
  /** Arguments of `turnout`, where a container names none. */
  readonly command: readonly string[];
  /** Number of the user: 0 where the kernel is programmed, with the capabilities that the container is given. */
  readonly uid: 0 | 65532;
}

/** The recipes as they are written: by name; what is left out is empty, or is called after the image. */
const WRITTEN = parse(readFileSync(new URL("recipes.yaml", import.meta.url), "utf8")) as {
  readonly tools: Readonly<Record<string, Partial<Tools>>>;
  readonly images: Readonly<
    Record<
      ImageName,
      Pick<Recipe, "title" | "uid"> & Partial<Pick<Recipe, "repository" | "command">> & { readonly tools: readonly string[] }
    >
  >;
};

function toolsCalled(name: string): Tools {
  const written = WRITTEN.tools[name];
  if (written === undefined) throw new Error(`recipes.yaml has no tools called ${name}`);
  return { packages: [], programs: [], links: {}, opened: [], plugins: [], ...written };
}

/** What every image has. */
export const BASE: Tools = toolsCalled("base");

/** The program nft. */
export const NFT: Tools = toolsCalled("nft");

function recipeCalled(name: ImageName): Recipe {
  const written = WRITTEN.images[name];
  const called = { name, repository: `turnout-${name}`, command: ["run", "--backend", name] };
  return { ...called, ...written, tools: written.tools.map(toolsCalled) };
}

/** All images, by name. */
export const RECIPES = Object.fromEntries(
  (Object.keys(WRITTEN.images) as ImageName[]).map((name) => [name, recipeCalled(name)] as const),
) as Readonly<Record<ImageName, Recipe>>;

/** List the Debian packages of some tools, sorted, each once. Pure. */
export function packagesOf(tools: readonly Tools[]): readonly string[] {
  return [...new Set(tools.flatMap(({ packages }) => packages))].toSorted();
}

/** Where the libraries of a machine are. Pure. */
export function libraryFolder({ triplet }: Platform): string {
  return `/usr/lib/${triplet}`;
}

import { posix } from "node:path";

/** What is at a path of an image. Everything belongs to root, and has no time. */
export type Entry =
  | { readonly kind: "file"; readonly mode: number; readonly content: Buffer | { readonly path: string } }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "folder"; readonly mode: number };

/** Files by their absolute path. Folders above a file that are not named are made, with mode 755. */
export type FileTree = ReadonlyMap<string, Entry>;

const MERGED = /^\/(?:bin|sbin|lib|lib32|lib64)(?=\/|$)/;

/** The links that merge the folders of programs and libraries, as Debian has them. */
export const MERGED_LINKS: FileTree = new Map(
  ["bin", "sbin", "lib", "lib64"].map((name): [string, Entry] => [`/${name}`, { kind: "link", target: `usr/${name}` }]),
);

/** Say where a path of a Debian package is once `/lib` is `/usr/lib`: packages of Debian 12 still have both. Pure. */
export function mergedPath(path: string): string {
  return path.replace(MERGED, (folder) => `/usr${folder}`);
}

/**
 * Follow links: the path, each link on the way, and last what they lead to; undefined where there is nothing. Pure.
 * @throws {Error} when links lead in a circle.
 */
export function linkChain(tree: FileTree, path: string): readonly string[] | undefined {
  const chain = [mergedPath(path)];
  for (;;) {
    const at = chain.at(-1) ?? path;
    const entry = tree.get(at);
    if (entry?.kind !== "link") return entry === undefined ? undefined : chain;
    const next = mergedPath(posix.resolve(posix.dirname(at), entry.target));
    if (chain.includes(next)) throw new Error(`${path}: links lead in a circle`);
    chain.push(next);
  }
}

/** Join trees. @throws {Error} when two have another thing at the same path: neither may hide the other. */
export function joinTrees(...trees: readonly FileTree[]): FileTree {
  const joined = new Map<string, Entry>();
  for (const [path, entry] of trees.flatMap((tree) => [...tree])) {
    const there = joined.get(path);
    if (there !== undefined && JSON.stringify(there) !== JSON.stringify(entry)) throw new Error(`${path}: two parts of the image have it`);
    joined.set(path, entry);
  }
  return joined;
}

/** Take from a tree what another one already has. Pure. */
export function treeWithout(tree: FileTree, other: FileTree): FileTree {
  return new Map([...tree].filter(([path]) => !other.has(path)));
}

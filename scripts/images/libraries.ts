import type { ElfFacts } from "./elf.ts";
import { linkChain, mergedPath } from "./file-tree.ts";
import type { Entry, FileTree } from "./file-tree.ts";

/** Looks into a file of a tree; undefined when it is no ELF file. */
export type ReadElf = (entry: Entry) => ElfFacts | undefined;

/**
 * Choose from the files of packages the wanted ones and every library that they are linked with.
 *
 * Shape: `wanted` are paths; `linked` are file names of libraries that are opened at run time. Gives paths, sorted.
 * @throws {Error} naming the file that is not there, and what needs it: its package is missing in the recipe.
 */
export function chooseFiles(
  all: FileTree,
  folder: string,
  read: ReadElf,
  { wanted, linked }: { readonly wanted: readonly string[]; readonly linked: readonly string[] },
): readonly string[] {
  const chosen = new Set<string>();
  const queue = [
    ...wanted.map((path) => ({ path, by: "the recipe" })),
    ...linked.map((name) => ({ path: `${folder}/${name}`, by: "the recipe" })),
  ];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { path, by } = next;
    if (chosen.has(path)) continue;
    const chain = linkChain(all, path);
    if (chain === undefined) throw new Error(`${by} needs ${path}, which no package of the recipe has`);
    for (const one of chain) {
      chosen.add(one);
      const entry = all.get(one);
      const facts = entry?.kind === "file" ? read(entry) : undefined;
      for (const name of facts?.needed ?? []) queue.push({ path: `${folder}/${name}`, by: one });
      if (facts?.interpreter !== undefined) queue.push({ path: mergedPath(facts.interpreter), by: one });
    }
  }
  return [...chosen].toSorted();
}

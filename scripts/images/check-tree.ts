import { linkChain, mergedPath } from "./file-tree.ts";
import type { FileTree } from "./file-tree.ts";
import type { ReadElf } from "./libraries.ts";
import { libraryFolder } from "./recipes.ts";
import type { Platform } from "./platforms.ts";

/** What somebody who got into a container would be glad of. */
const UNWANTED = [
  "npm",
  "npx",
  "corepack",
  "yarn",
  "sh",
  "bash",
  "dash",
  "busybox",
  "apt",
  "apt-get",
  "dpkg",
  "gcc",
  "cc",
  "clang",
  "perl",
  "python3",
  "curl",
  "wget",
];

function elfProblems(tree: FileTree, path: string, platform: Platform, read: ReadElf): readonly string[] {
  const entry = tree.get(path);
  const facts = entry?.kind === "file" ? read(entry) : undefined;
  // Programs of BPF are of another machine on purpose: the kernel's.
  if (facts === undefined || path.endsWith(".bpf.o")) return [];
  const { machine, interpreter, needed } = facts;
  const wanted = [
    ...needed.map((name) => `${libraryFolder(platform)}/${name}`),
    ...(interpreter === undefined ? [] : [mergedPath(interpreter)]),
  ];
  return [
    ...(machine === platform.elfMachine ? [] : [`${path} is for machine ${machine}, not for ${platform.arch}`]),
    ...wanted.filter((library) => linkChain(tree, library) === undefined).map((library) => `${path} needs ${library}`),
  ];
}

/**
 * Find what is wrong with the files of an image, without running any: a program or library of another machine, one that is not there, a link to nothing,
 * and programs that don't belong there.
 *
 * Shape: a sentence for each; empty is well. Pure.
 */
export function checkTree(tree: FileTree, platform: Platform, read: ReadElf): readonly string[] {
  return [...tree].flatMap(([path, entry]) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    return [
      ...(UNWANTED.includes(name) && path.includes("bin/") ? [`${path} does not belong into an image`] : []),
      ...(entry.kind === "link" && !/^\/(?:bin|sbin|lib|lib64)$/.test(path) && linkChain(tree, path) === undefined
        ? [`${path} leads to nothing`]
        : []),
      ...elfProblems(tree, path, platform, read),
    ];
  });
}

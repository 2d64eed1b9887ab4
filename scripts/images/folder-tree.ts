import { existsSync, lstatSync, readdirSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Entry, FileTree } from "./file-tree.ts";

/**
 * List the files and links below a folder, by their path from there with a leading `/`; folders are left out.
 * @throws what node:fs throws; {Error} for what is neither file nor link nor folder.
 */
export function treeOfFolder(folder: string): FileTree {
  const tree = new Map<string, Entry>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted()) {
    const path = join(folder, name);
    const facts = lstatSync(path);
    if (facts.isDirectory()) continue;
    if (facts.isSymbolicLink()) tree.set(`/${name}`, { kind: "link", target: readlinkSync(path) });
    else if (facts.isFile()) tree.set(`/${name}`, { kind: "file", mode: facts.mode & 0o111 ? 0o755 : 0o644, content: { path } });
    else throw new Error(`${path} is no file, link or folder`);
  }
  return tree;
}

/**
 * Put something that is complete in its place. Where another process was quicker, what it has put there stays: it is the same.
 * @throws what node:fs throws.
 */
export function putInPlace(fresh: string, place: string): void {
  try {
    renameSync(fresh, place);
  } catch (error) {
    if (!existsSync(place)) throw error;
    rmSync(fresh, { recursive: true });
  }
}

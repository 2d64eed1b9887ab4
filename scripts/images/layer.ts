import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Entry, FileTree } from "./file-tree.ts";
import { putInPlace } from "./folder-tree.ts";

/** A layer as it is stored. */
export interface Layer {
  readonly blob: Buffer;
  /** SHA-256 of the archive before it was compressed, in hex. */
  readonly diffId: string;
  /** Bytes of all files. */
  readonly filesBytes: number;
}

function place(path: string, entry: Entry): void {
  if (entry.kind === "folder") {
    mkdirSync(path, { recursive: true });
    chmodSync(path, entry.mode);
    return;
  }
  mkdirSync(dirname(path), { recursive: true });
  if (entry.kind === "link") symlinkSync(entry.target, path);
  else {
    if (Buffer.isBuffer(entry.content)) writeFileSync(path, entry.content);
    else copyFileSync(entry.content.path, path);
    chmodSync(path, entry.mode);
  }
}

/** Write a tree into a folder. @throws what node:fs throws. */
export function writeTree(folder: string, tree: FileTree): void {
  for (const [path, entry] of tree) place(join(folder, path), entry);
}

function bytesOf(entry: Entry): number {
  if (entry.kind !== "file") return 0;
  return Buffer.isBuffer(entry.content) ? entry.content.length : readFileSync(entry.content.path).length;
}

/** The flags with which GNU tar makes the same archive of the same files. @source reproducible-builds.org, "Archive metadata" */
const SAME = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];

/**
 * Write a tree as an archive: the same bytes for the same tree, whenever and by whomever it is written.
 * @throws {Error} what tar says.
 */
export function writeArchive(path: string, tree: FileTree): void {
  const folder = mkdtempSync(join(tmpdir(), "turnout-image."));
  const mask = process.umask(0o022);
  try {
    writeTree(folder, tree);
    chmodSync(folder, 0o755);
    execFileSync("tar", [...SAME, "-C", folder, "-cf", path, "."], { env: { ...process.env, LC_ALL: "C" } });
  } finally {
    process.umask(mask);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pack a tree as a layer. @throws {Error} what tar says. */
export function packLayer(tree: FileTree): Layer {
  const folder = mkdtempSync(join(tmpdir(), "turnout-layer."));
  try {
    const archive = join(folder, "layer.tar");
    writeArchive(archive, tree);
    const tar = readFileSync(archive);
    return {
      // The header that zlib writes has neither name nor time.
      blob: gzipSync(tar, { level: 6 }),
      diffId: createHash("sha256").update(tar).digest("hex"),
      filesBytes: [...tree.values()].reduce((sum, entry) => sum + bytesOf(entry), 0),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pack what does not change between releases once: by what is in it, in a folder. */
export function packLayerOnce(tree: FileTree, folder: string): Layer {
  const hash = createHash("sha256");
  for (const [path, entry] of [...tree].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const { content, ...facts } = entry.kind === "file" ? entry : { ...entry, content: Buffer.of() };
    hash.update(`${JSON.stringify([path, facts])}\n`).update(Buffer.isBuffer(content) ? content : readFileSync(content.path));
  }
  const kept = join(folder, hash.digest("hex"));
  if (!existsSync(kept)) {
    const { blob, ...rest } = packLayer(tree);
    mkdirSync(folder, { recursive: true });
    const fresh = mkdtempSync(`${kept}.`);
    writeFileSync(join(fresh, "blob"), blob);
    writeFileSync(join(fresh, "facts.json"), JSON.stringify(rest));
    putInPlace(fresh, kept);
  }
  const facts = JSON.parse(readFileSync(join(kept, "facts.json"), "utf8")) as Omit<Layer, "blob">;
  return { blob: readFileSync(join(kept, "blob")), ...facts };
}

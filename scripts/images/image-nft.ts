import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { leftOut, needs } from "../needs.ts";
import type { NeedsOptions } from "../needs.ts";
import { quoted } from "../shell-word.ts";
import { Debian } from "./debian.ts";
import { parseDebianLock, pinsOf } from "./debian-lock.ts";
import { putInPlace } from "./folder-tree.ts";
import { PLATFORMS } from "./platforms.ts";
import type { Arch } from "./platforms.ts";
import { libraryFolder, NFT } from "./recipes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(ROOT, "out/cache/images");

/** The nft of the images on this machine, without installing it, and what tests that use it depend on. */
export interface ImageNft {
  /** A folder for PATH, with the command `nft` in it; "" where there is none. */
  readonly folder: string;
  readonly needs: NeedsOptions;
}

/**
 * Unpack the nft of the images: a newer one than Debian 12 has.
 *
 * Edges: its packages come by apt-get, once, and stay in the cache of the images. Where a pinned one is on no mirror any more, the newest do.
 * Where they can't be had, tests are skipped with the reason.
 */
export function imageNft(...wanted: readonly string[]): ImageNft {
  const arch = process.arch === "arm64" ? "arm64" : "amd64";
  try {
    return { folder: commandIn(packagesFor(arch), libraryFolder(PLATFORMS[arch])), needs: needs(...wanted) };
  } catch (error) {
    const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    const reason = line.slice(0, 200);
    process.stderr.write(`tests next to the nft of the images are skipped: ${reason}\n`);
    return { folder: "", needs: leftOut("image-packages", reason) };
  }
}

/** Its packages, unpacked. @throws {Error} as {@link Debian.files}. */
function packagesFor(arch: Arch): readonly string[] {
  mkdirSync(CACHE, { recursive: true });
  const debian = new Debian(CACHE);
  const names = ["libc6", ...NFT.packages];
  try {
    return debian.folders(pinsOf(parseDebianLock(readFileSync(join(ROOT, "scripts/images/debian.lock"), "utf8")), arch, names));
  } catch {
    return debian.folders(debian.newest(names).filter((pin) => pin.arch === arch));
  }
}

/** Its own loader and libraries: this machine's are older. */
function commandIn(folders: readonly string[], libraries: string): string {
  const find = (path: string): string => folders.map((folder) => join(folder, path)).find(existsSync) ?? "";
  const loader = find(process.arch === "arm64" ? `${libraries}/ld-linux-aarch64.so.1` : `${libraries}/ld-linux-x86-64.so.2`);
  const path = folders.map((folder) => join(folder, libraries)).join(":");
  const script = `#!/bin/sh\nexec ${[loader, "--library-path", path, find("/usr/sbin/nft")].map(quoted).join(" ")} "$@"\n`;
  const place = join(CACHE, `nft-${createHash("sha256").update(script).digest("hex").slice(0, 16)}`);
  if (existsSync(place)) return place;
  const fresh = mkdtempSync(`${place}.`);
  writeFileSync(join(fresh, "nft"), script, { mode: 0o755 });
  putInPlace(fresh, place);
  return place;
}

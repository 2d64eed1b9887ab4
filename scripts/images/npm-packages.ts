import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { FileTree } from "./file-tree.ts";
import { putInPlace, treeOfFolder } from "./folder-tree.ts";
import type { NpmPackage } from "./npm-lock.ts";

/** Packages of the npm registry, as package-lock.json pins them: for other machines than this one, too. */
export class NpmPackages {
  readonly #folder: string;

  /** @param folder where files are kept between runs */
  constructor(folder: string) {
    this.#folder = join(folder, "npm");
    mkdirSync(this.#folder, { recursive: true });
  }

  /** Give the files of a package, from its own folder. @throws {Error} what npm says, or when the tarball is another one than the pinned. */
  files(one: NpmPackage): FileTree {
    const folder = join(this.#folder, `${one.name.replace("/", "+")}@${one.version}`);
    if (!existsSync(folder)) this.#unpack(one, folder);
    return treeOfFolder(folder);
  }

  #unpack({ name, version, integrity }: NpmPackage, folder: string): void {
    const fresh = `${folder}.${process.pid}`;
    mkdirSync(fresh);
    const [packed] = JSON.parse(
      execFileSync("npm", ["pack", "--json", "--ignore-scripts", `${name}@${version}`], { cwd: fresh, encoding: "utf8" }),
    ) as readonly { readonly filename: string }[];
    const tarball = join(fresh, packed?.filename ?? "");
    const found = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
    if (found !== integrity) throw new Error(`${name}@${version}: ${found} was fetched, package-lock.json pins ${integrity}`);
    execFileSync("tar", ["-xzf", tarball, "-C", fresh, "--strip-components=1", "--no-same-owner"]);
    rmSync(tarball);
    putInPlace(fresh, folder);
  }
}

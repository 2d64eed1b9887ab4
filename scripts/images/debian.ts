import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDownload } from "./debian-lock.ts";
import type { DebianPackage } from "./debian-lock.ts";
import { treeOfFolder } from "./folder-tree.ts";
import { mergedPath } from "./file-tree.ts";
import type { FileTree } from "./file-tree.ts";
import { PLATFORMS } from "./platforms.ts";

/**
 * Debian's packages, without touching what is installed here: apt with lists and caches of its own, and the machine's sources.
 */
export class Debian {
  readonly #folder: string;
  #isUpdated = false;

  /** @param folder where files are kept between runs */
  constructor(folder: string) {
    this.#folder = folder;
    for (const name of ["lists/partial", "cache/archives/partial", "debs"]) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, "status"), "");
  }

  #apt(args: readonly string[], cwd: string): string {
    const settings = [
      `Dir::State::lists=${join(this.#folder, "lists")}`,
      `Dir::Cache=${join(this.#folder, "cache")}`,
      `Dir::State::status=${join(this.#folder, "status")}`,
      ...Object.keys(PLATFORMS).map((arch) => `APT::Architectures::=${arch}`),
      // The cache is nobody else's, and a folder of root's alone would keep apt's own user out.
      "APT::Sandbox::User=root",
    ];
    const options = settings.flatMap((setting) => ["-o", setting]);
    return execFileSync("apt-get", [...options, "-qq", ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  #update(): void {
    if (!this.#isUpdated) this.#apt(["update"], this.#folder);
    this.#isUpdated = true;
  }

  /** Pin the newest version of each package for every machine. @throws {Error} what apt-get says. */
  newest(names: readonly string[]): readonly DebianPackage[] {
    this.#update();
    const wanted = Object.keys(PLATFORMS).flatMap((arch) => names.map((name) => `${name}:${arch}`));
    const pins = this.#apt(["download", "--print-uris", ...wanted], this.#folder)
      .split("\n")
      .map(parseDownload);
    return pins.filter((pin) => pin !== undefined);
  }

  /**
   * Give the files of a package, as they are where `/lib` is `/usr/lib`; its control files are below `/DEBIAN`.
   * @throws {Error} when no mirror has that version any more, or the file is another one than the pinned.
   */
  files(pin: DebianPackage): FileTree {
    const folder = join(this.#folder, "debs", pin.sha256);
    if (!existsSync(folder)) this.#unpack(pin, folder);
    return new Map([...treeOfFolder(folder)].map(([path, entry]) => [mergedPath(path), entry]));
  }

  #unpack(pin: DebianPackage, folder: string): void {
    const file = this.#download(pin);
    const found = createHash("sha256").update(readFileSync(file)).digest("hex");
    if (found !== pin.sha256) throw new Error(`${pin.name} ${pin.version} for ${pin.arch}: SHA-256 is ${found}, pinned is ${pin.sha256}`);
    const fresh = `${folder}.${process.pid}`;
    execFileSync("dpkg-deb", ["--raw-extract", file, fresh]);
    rmSync(file);
    renameSync(fresh, folder);
  }

  #download({ name, version, arch }: DebianPackage): string {
    const folder = join(this.#folder, "cache", `${name}.${arch}.${process.pid}`);
    mkdirSync(folder, { recursive: true });
    try {
      this.#update();
      this.#apt(["download", `${name}:${arch}=${version}`], folder);
    } catch (cause) {
      throw new Error(`${name} ${version} for ${arch} can't be had: if Debian replaced it, run npm run image -- --update`, { cause });
    }
    const [file] = globSync(join(folder, "*.deb"));
    if (file === undefined) throw new Error(`apt-get download ${name}:${arch}=${version} left no file`);
    const kept = join(this.#folder, "cache", `${name}.${arch}.deb`);
    renameSync(file, kept);
    rmSync(folder, { recursive: true });
    return kept;
  }
}

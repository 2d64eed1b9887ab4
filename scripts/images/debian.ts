import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDownload } from "./debian-lock.ts";
import type { DebianPackage } from "./debian-lock.ts";
import { putInPlace, treeOfFolder } from "./folder-tree.ts";
import { mergedPath } from "./file-tree.ts";
import type { FileTree } from "./file-tree.ts";
import { PLATFORMS } from "./platforms.ts";

/** The Debian of the images, also where this machine has another one. */
export const SUITE = { codename: "trixie", version: "13" } as const;

/** Say where packages of the images' Debian come from: the mirrors that this machine has for its own Debian. Pure. */
export function sourcesFrom(targets: string, codename: string): string {
  const lines = targets.split("\n").flatMap((line) => {
    const [uri = "", release = "", component = ""] = line.split(" ");
    if (component !== "main" || !(release === codename || release.startsWith(`${codename}-`))) return [];
    const suite = `${SUITE.codename}${release.slice(codename.length)}`;
    return [`deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${uri} ${suite} main\n`];
  });
  return [...new Set(lines)].join("");
}

/**
 * Debian's packages, without touching what is installed here: apt with lists, caches and sources of its own.
 */
export class Debian {
  readonly #folder: string;
  #isUpdated = false;

  /** @param folder where files are kept between runs */
  constructor(folder: string) {
    this.#folder = folder;
    for (const name of ["lists/partial", "cache/archives/partial", "debs"]) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, "status"), "");
    const [, codename = ""] = /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync("/etc/os-release", "utf8")) ?? [];
    const targets = execFileSync("apt-get", ["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    writeFileSync(join(folder, "sources.list"), sourcesFrom(targets, codename));
  }

  #apt(args: readonly string[], cwd: string): string {
    const settings = [
      `Dir::State::lists=${join(this.#folder, "lists")}`,
      `Dir::Cache=${join(this.#folder, "cache")}`,
      `Dir::State::status=${join(this.#folder, "status")}`,
      `Dir::Etc::sourcelist=${join(this.#folder, "sources.list")}`,
      "Dir::Etc::sourceparts=-",
      ...Object.keys(PLATFORMS).map((arch) => `APT::Architectures::=${arch}`),
      // The cache is nobody else's, and a folder of root's alone would keep apt's own user out.
      "APT::Sandbox::User=root",
    ];
    const options = settings.flatMap((setting) => ["-o", setting]);
    const { status, stdout, stderr, error } = spawnSync("apt-get", [...options, "-qq", ...args], { cwd, encoding: "utf8" });
    if (error !== undefined) throw error;
    if (status === 0) return stdout;
    throw new Error(`apt-get ${args[0]}: ${/^E: .*/m.exec(stderr)?.[0] ?? `exit code ${status}`}`, { cause: stderr });
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
   * Give the files of some packages, as they are where `/lib` is `/usr/lib`; a package's control files are below `/DEBIAN`.
   * @throws {Error} when no mirror has a version any more, or a file is another one than the pinned.
   */
  files(pins: readonly DebianPackage[]): readonly FileTree[] {
    return this.folders(pins).map((folder) => new Map([...treeOfFolder(folder)].map(([path, entry]) => [mergedPath(path), entry])));
  }

  /** Give the folder of each package, unpacked. @throws {Error} as {@link Debian.files}. */
  folders(pins: readonly DebianPackage[]): readonly string[] {
    this.#fetch(pins.filter((pin) => !existsSync(this.#place(pin))));
    return pins.map((pin) => this.#place(pin));
  }

  #place({ sha256 }: DebianPackage): string {
    return join(this.#folder, "debs", sha256);
  }

  /** All in one call: apt-get reads its lists each time, which takes it seconds. */
  #fetch(pins: readonly DebianPackage[]): void {
    if (pins.length === 0) return;
    const folder = mkdtempSync(join(this.#folder, "cache", "fetch."));
    const wanted = pins.map(({ name, arch, version }) => `${name}:${arch}=${version}`);
    try {
      this.#update();
      this.#apt(["download", ...wanted], folder);
      const files = new Map(globSync(join(folder, "*.deb")).map((file) => [sha256Of(file), file]));
      for (const pin of pins) this.#unpack(pin, files.get(pin.sha256));
    } catch (cause) {
      throw new Error(`not all packages can be had; if Debian has newer ones, run npm run image -- --update: ${wanted.join(" ")}`, {
        cause,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  #unpack(pin: DebianPackage, file: string | undefined): void {
    if (file === undefined)
      throw new Error(`${pin.name} ${pin.version} for ${pin.arch}: no file has the SHA-256 that is pinned, ${pin.sha256}`);
    const fresh = `${this.#place(pin)}.${process.pid}`;
    execFileSync("dpkg-deb", ["--raw-extract", file, fresh]);
    putInPlace(fresh, this.#place(pin));
  }
}

function sha256Of(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

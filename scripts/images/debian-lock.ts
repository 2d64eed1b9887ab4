import type { Arch } from "./platforms.ts";

/** One Debian package for one machine, pinned. */
export interface DebianPackage {
  readonly arch: Arch;
  readonly name: string;
  readonly version: string;
  /** Of its .deb file, in hex. */
  readonly sha256: string;
}

const HEAD = `# The Debian packages of the images, pinned: machine, name, version, SHA-256 of the file. Written by: npm run image -- --update`;

/** Read the lock file. @throws {Error} naming a line that is no such line. */
export function parseDebianLock(text: string): readonly DebianPackage[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const match = /^(amd64|arm64) (\S+) (\S+) ([0-9a-f]{64})$/.exec(line);
    if (match === null) throw new Error(`scripts/images/debian.lock: no package is named by ${JSON.stringify(line)}`);
    const [, arch, name = "", version = "", sha256 = ""] = match;
    return { arch: arch as Arch, name, version, sha256 };
  });
}

/** Write the lock file. Pure. */
export function debianLockText(packages: readonly DebianPackage[]): string {
  const lines = packages.map(({ arch, name, version, sha256 }) => `${arch} ${name} ${version} ${sha256}`).toSorted();
  return `${[HEAD, ...lines].join("\n")}\n`;
}

/** Find the pins of some packages. @throws {Error} naming the one that has none. */
export function pinsOf(lock: readonly DebianPackage[], arch: Arch, names: readonly string[]): readonly DebianPackage[] {
  return names.map((wanted) => {
    const found = lock.find((one) => one.arch === arch && one.name === wanted);
    if (found === undefined) throw new Error(`scripts/images/debian.lock has no ${wanted} for ${arch}: run npm run image -- --update`);
    return found;
  });
}

/** Read a line of `apt-get download --print-uris`; undefined for other lines. Pure. */
export function parseDownload(line: string): DebianPackage | undefined {
  const match = /^'[^']+' ([^_ ]+)_([^_ ]+)_([^_ ]+)\.deb \d+ SHA256:([0-9a-f]{64})$/.exec(line);
  if (match === null) return undefined;
  const [, name = "", version = "", arch, sha256 = ""] = match;
  return { arch: arch as Arch, name, version: version.replaceAll("%3a", ":"), sha256 };
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commandTree } from "./command-tree.ts";
import { Debian } from "./debian.ts";
import { parseDebianLock, pinsOf } from "./debian-lock.ts";
import type { DebianPackage } from "./debian-lock.ts";
import { readElf } from "./elf.ts";
import { joinTrees, MERGED_LINKS, treeWithout } from "./file-tree.ts";
import type { Entry, FileTree } from "./file-tree.ts";
import { debianLicence, lenderOf, npmLicence } from "./licences.ts";
import { chooseFiles } from "./libraries.ts";
import type { ReadElf } from "./libraries.ts";
import { npmClosure } from "./npm-lock.ts";
import type { NpmLock, NpmPackage } from "./npm-lock.ts";
import { NpmPackages } from "./npm-packages.ts";
import type { Platform } from "./platforms.ts";
import { BASE, libraryFolder, packagesOf } from "./recipes.ts";
import type { Recipe, Tools } from "./recipes.ts";
import { billOfMaterials } from "./sbom.ts";

/** An image's files, by layer: what changes rarely first, and what other images share. */
export interface ImageTrees {
  readonly base: FileTree;
  readonly tools: FileTree;
  readonly command: FileTree;
  /** CycloneDX, also in the layer of tools. */
  readonly bill: string;
  /** Of the command. */
  readonly version: string;
}

/** Where things come from. */
export interface Sources {
  /** The checkout, built. */
  readonly root: string;
  /** Where what was fetched is kept. */
  readonly cache: string;
}

/** Where an image has its bill of materials. */
const BILL = "/usr/share/doc/turnout/sbom.cdx.json";

function contentOf(entry: Entry): Buffer | undefined {
  if (entry.kind !== "file") return undefined;
  return Buffer.isBuffer(entry.content) ? entry.content : readFileSync(entry.content.path);
}

/** Read the facts of an ELF file of a tree. */
export const readElfEntry: ReadElf = (entry) => {
  const content = contentOf(entry);
  return content === undefined ? undefined : readElf(content);
};

/** Read a file of a tree as text; empty for what is none. */
export function readText(entry: Entry): string {
  return contentOf(entry)?.toString("utf8") ?? "";
}

function text(content: string): Entry {
  return { kind: "file", mode: 0o644, content: Buffer.from(content) };
}

/** What a program expects of any system; user 65532 is `nonroot` in other small images, too. */
const SYSTEM: FileTree = new Map<string, Entry>([
  ["/etc/passwd", text("root:x:0:0:root:/:/nonexistent\nnonroot:x:65532:65532:nonroot:/:/nonexistent\n")],
  ["/etc/group", text("root:x:0:\nnonroot:x:65532:\n")],
  ["/etc/nsswitch.conf", text("hosts: files dns\n")],
  ["/etc/os-release", { kind: "link", target: "../usr/lib/os-release" }],
  ["/tmp", { kind: "folder", mode: 0o1777 }],
  ...["/dev", "/proc", "/run", "/sys"].map((path): [string, Entry] => [path, { kind: "folder", mode: 0o755 }]),
]);

/** What says of a package's files whose they are: its licence, and what scanners read where there is no dpkg. */
function papers(tree: FileTree, name: string): FileTree {
  const control = tree.get("/DEBIAN/control");
  return new Map([...debianLicence(tree, name), ...(control === undefined ? [] : [[`/var/lib/dpkg/status.d/${name}`, control] as const])]);
}

function toolsTree(debian: Debian, pins: readonly DebianPackage[], all: readonly Tools[], platform: Platform, node: Entry): FileTree {
  const trees = debian.files(pins);
  const packages = pins.map(({ name }, index) => ({ name, tree: trees[index] ?? new Map<string, Entry>() }));
  const files = new Map(
    packages.flatMap(({ tree }) => [...tree].filter(([path]) => !path.startsWith("/DEBIAN/") && !path.startsWith("/usr/share/"))),
  );
  const folder = libraryFolder(platform);
  const plugins = all.flatMap((tools) => tools.plugins.map((name) => `${folder}/${name}/`));
  const wanted = [
    ...all.flatMap(({ programs }) => programs),
    ...[...files.keys()].filter((path) => plugins.some((at) => path.startsWith(at))),
  ];
  const linked = [...all.flatMap(({ opened }) => opened), ...(readElfEntry(node)?.needed ?? [])];
  const chosen = chooseFiles(files, folder, readElfEntry, { wanted, linked });
  // Of some packages only the licence is needed: that of others.
  const lenders = packages.flatMap(({ name, tree }) => lenderOf(tree, name) ?? []);
  const unused = packages
    .filter(({ name, tree }) => !chosen.some((path) => tree.has(path)) && !lenders.includes(name))
    .map(({ name }) => name);
  if (unused.length > 0) throw new Error(`nothing is needed of ${unused.join(", ")}: take it out of the recipe`);
  return joinTrees(
    new Map(chosen.map((path) => [path, files.get(path) as Entry])),
    new Map(all.flatMap(({ links }) => Object.entries(links).map(([path, target]): [string, Entry] => [path, { kind: "link", target }]))),
    ...packages.map(({ name, tree }) => papers(tree, name)),
  );
}

function nodeEntry(
  npm: NpmPackages,
  lock: NpmLock,
  { npmCpu }: Platform,
): { readonly pin: NpmPackage; readonly tree: FileTree; readonly program: Entry } {
  const place = `node_modules/node-linux-${npmCpu}`;
  const { version = "", license, integrity } = lock[place] ?? {};
  const pin = { name: `node-linux-${npmCpu}`, version, license, integrity, place };
  const files = npm.files(pin);
  const [program, licence] = ["/bin/node", "/LICENSE"].map((path) => files.get(path));
  if (program === undefined || licence === undefined) throw new Error(`${pin.name}@${version} has no program or no licence`);
  return {
    pin,
    program,
    tree: new Map([["/usr/bin/node", program], ...npmLicence(pin.name, licence)]),
  };
}

/** Gather the files of an image. @throws {Error} what apt-get, dpkg-deb and npm say; a file that a recipe lacks. */
export function imageTrees(recipe: Recipe, platform: Platform, { root, cache }: Sources): ImageTrees {
  const lock = (JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { readonly packages: NpmLock }).packages;
  const debianLock = parseDebianLock(readFileSync(join(root, "scripts/images/debian.lock"), "utf8"));
  const [debian, npm] = [new Debian(cache), new NpmPackages(cache)];
  const closure = npmClosure(lock, "packages/cli", platform);
  const node = nodeEntry(npm, lock, platform);

  const basePins = pinsOf(debianLock, platform.arch, packagesOf([BASE]));
  const pins = pinsOf(debianLock, platform.arch, packagesOf([BASE, ...recipe.tools]));
  const base = joinTrees(SYSTEM, MERGED_LINKS, node.tree, toolsTree(debian, basePins, [BASE], platform, node.program));
  const tools = treeWithout(toolsTree(debian, pins, [BASE, ...recipe.tools], platform, node.program), base);
  const version = closure.find(({ name }) => name === "@turnout/cli")?.version ?? "";
  const bill = billOfMaterials({ repository: recipe.repository, version, debian: pins, npm: [node.pin, ...closure] });
  return {
    base,
    tools: joinTrees(tools, new Map([[BILL, text(bill)]])),
    command: commandTree(root, closure, npm, platform),
    bill,
    version,
  };
}

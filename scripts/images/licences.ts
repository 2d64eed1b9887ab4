import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { linkChain } from "./file-tree.ts";
import type { Entry, FileTree } from "./file-tree.ts";
import type { NpmPackage } from "./npm-lock.ts";

const DOC = "/usr/share/doc";
/** Texts that many packages of Debian have in common, in `base-files`. */
const COMMON = "/usr/share/common-licenses/";

/** Say where an image has the licence of an npm package. Pure. */
function npmPlace(name: string): string {
  return `${DOC}/turnout/${name}/LICENSE`;
}

/** Say where an image has the licence of a Debian package, as Debian does. Pure. */
function debianPlace(name: string): string {
  return `${DOC}/${name}/copyright`;
}

function fileOf(content: Buffer): Entry {
  return { kind: "file", mode: 0o644, content };
}

/** Give what an image holds of a package that is not the command's, e.g. Node. Pure. */
export function npmLicence(name: string, licence: Entry): FileTree {
  return new Map([[npmPlace(name), licence]]);
}

/**
 * Gather the licences of all that the command is built from.
 * @throws {Error} for a package without any.
 */
export function npmLicences(root: string, closure: readonly NpmPackage[]): FileTree {
  return new Map(
    closure.map(({ name, place }) => {
      // A part of koffi for one machine is of koffi's sources, and under its licence.
      const folder = join(root, name.startsWith("@koromix/koffi-") ? "node_modules/koffi" : place);
      const [file] = globSync(["LICENSE*", "LICENCE*", "license*"], { cwd: folder }).toSorted();
      const text = file === undefined ? noticesOf(root, folder) : readFileSync(join(folder, file));
      if (text === undefined) throw new Error(`${name} has no licence: neither a file of its own nor notices in its sources`);
      return [npmPlace(name), fileOf(text)];
    }),
  );
}

/** Some packages say their licences only at the head of each source: each notice once, and the Apache licence, which its notice only names, in full. */
function noticesOf(root: string, folder: string): Buffer | undefined {
  const heads = globSync("**/*.js", { cwd: folder }).map(
    (file) => /^(?:\/\/.*\n)+/.exec(readFileSync(join(folder, file), "utf8"))?.[0] ?? "",
  );
  const notices = [...new Set(heads.filter((head) => head.includes("Copyright")))].toSorted();
  if (notices.length === 0) return undefined;
  const named = notices.some((notice) => notice.includes("Licensed under the Apache License, Version 2.0"));
  return Buffer.from([...notices, ...(named ? [readFileSync(join(root, "LICENSE"), "utf8")] : [])].join("\n"));
}

/**
 * Take the licence out of the files of a Debian package, and the texts that others name. Pure.
 *
 * Edges: the folder of documents may be a link to that of another package; then the licence is a link to the other's.
 */
export function debianLicence(tree: FileTree, name: string): FileTree {
  const lender = lenderOf(tree, name);
  const place = debianPlace(name);
  const end = linkChain(tree, place)?.at(-1);
  const own = end === undefined ? undefined : tree.get(end);
  const entry: Entry | undefined = lender === undefined ? own : { kind: "link", target: `../${lender}/copyright` };
  return new Map([...[...tree].filter(([path]) => path.startsWith(COMMON)), ...(entry === undefined ? [] : [[place, entry] as const])]);
}

/** Name the package that has the documents of another one, and so its licence. Pure. */
export function lenderOf(tree: FileTree, name: string): string | undefined {
  const folder = tree.get(`${DOC}/${name}`);
  return folder?.kind === "link" ? folder.target : undefined;
}

interface Bill {
  readonly components: readonly { readonly name: string; readonly purl?: string }[];
}

/**
 * Find what a bill of materials names and the image has no licence of, and texts that a licence names and the image lacks. Pure.
 *
 * Shape: a sentence for each; empty is well. `read` gives the text of a file.
 */
export function licenceProblems(tree: FileTree, bill: string, read: (entry: Entry) => string): readonly string[] {
  const { components } = JSON.parse(bill) as Bill;
  return components.flatMap(({ name, purl }) => {
    if (purl === undefined) return [];
    const place = purl.startsWith("pkg:deb/") ? debianPlace(name) : npmPlace(name);
    const entry = tree.get(linkChain(tree, place)?.at(-1) ?? "");
    const text = entry === undefined ? "" : read(entry);
    if (text.trim() === "") return [`${name} has no licence at ${place}`];
    const named = new Set(text.match(/\/usr\/share\/common-licenses\/[\w.-]*\w/g));
    return [...named].flatMap((one) => (linkChain(tree, one) === undefined ? [`the licence of ${name} names ${one}`] : []));
  });
}

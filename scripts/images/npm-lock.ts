import type { Platform } from "./platforms.ts";

/** What package-lock.json says of a package. */
export interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly resolved?: string;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Packages by their place, e.g. `node_modules/yaml`, `packages/cli`. */
export type NpmLock = Readonly<Record<string, LockedPackage>>;

/** A package that a command is built from. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string | undefined;
  /** Of the tarball in the registry; undefined for our own packages. */
  readonly integrity: string | undefined;
  /** Where it is in the checkout. */
  readonly place: string;
}

function fits(wanted: string | readonly string[] | undefined, value: string): boolean {
  return wanted === undefined || [wanted].flat().includes(value);
}

/** Where a package finds another: beside itself, or in a folder above. */
function placeOf(lock: NpmLock, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.includes("/node_modules/") ? folder.slice(0, folder.lastIndexOf("/node_modules/")) : "") {
    const place = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (lock[place] !== undefined) return place;
    if (folder === "") return undefined;
  }
}

/**
 * List what a package needs at run time on a machine, itself first and without our package of a Node, sorted by name. Pure.
 *
 * @param start the place of the package, e.g. `packages/cli`
 * @throws {Error} when the lock file has no package that is needed.
 */
export function npmClosure(lock: NpmLock, start: string, { npmCpu }: Platform): readonly NpmPackage[] {
  const found = new Map<string, NpmPackage>();
  const queue = [start];
  for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
    const { name: own, version = "", license, integrity, dependencies = {}, optionalDependencies = {} } = lock[place] ?? {};
    if (found.has(place)) continue;
    const name = own ?? place.replace(/^.*node_modules\//, "");
    found.set(place, { name, version, license, integrity, place });
    for (const wanted of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const next = placeOf(lock, place, wanted);
      const entry = next === undefined ? undefined : lock[next];
      if (next === undefined || entry === undefined) {
        if (wanted in optionalDependencies) continue;
        throw new Error(`package-lock.json has no ${wanted}, which ${name} needs`);
      }
      if (!fits(entry.os, "linux") || !fits(entry.cpu, npmCpu) || wanted === "@turnout/node") continue;
      queue.push(entry.link === true ? (entry.resolved ?? next) : next);
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

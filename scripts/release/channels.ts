import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Build, Packed } from "./build.ts";
import { runAlone, type NpmSettings } from "./npm.ts";
import type { Manifest } from "./packages.ts";
import { comparePrecedence, isPrerelease } from "./versions.ts";

/** What users ask for: `npm install @turnout/cli@next`; stable is what they get without asking. */
export type Channel = "stable" | "next" | "nightly";

/** Channels by the name that npm has for each. */
export const CHANNELS: Readonly<Record<Channel, string>> = { stable: "latest", next: "next", nightly: "nightly" };

/** What may be done only where it is asked for. */
export interface MoveOptions {
  /** A channel may get an older version than it has. */
  readonly allowsOlder?: boolean;
}

/**
 * Publish a build to a channel. A version that is in the registry already is not published again: only its channel moves. Everything is compared before
 * anything is published, as a version can't be taken back.
 *
 * @throws {Error} when a tarball is not the one that was packed, when the registry has other contents under one of the versions, or when the channel has a
 * newer one. Nothing was published then.
 */
export async function publish(
  npm: NpmSettings,
  build: Build,
  channel: Channel,
  { allowsOlder = false }: MoveOptions = {},
): Promise<readonly string[]> {
  const there = new Map<Packed, string | undefined>();
  for (const one of build.packages) {
    const integrity = await integrityOf(npm, build.folder, one);
    const [tarball, newer] = [await tarballProblem(build, one), allowsOlder ? undefined : await newerProblem(npm, build, one, channel)];
    const problem = tarball ?? (integrity === undefined ? undefined : contentProblem(one, integrity)) ?? newer;
    if (problem !== undefined) throw new Error(`${problem}: nothing was published`);
    there.set(one, integrity);
  }
  const said: string[] = [];
  for (const [one, integrity] of there) {
    const { file, id } = { file: join(build.folder, one.file), id: idOf(one) };
    const tag = CHANNELS[channel];
    if (integrity === undefined) await runAlone(npm, build.folder, ["npm", "publish", file, "--tag", tag, "--access", "public"]);
    else await runAlone(npm, build.folder, ["npm", "dist-tag", "add", id, tag]);
    said.push(`${id} ${integrity === undefined ? "published" : "was there, moved"} to ${channel}`);
  }
  return said;
}

/**
 * Move a build to another channel, without building or publishing anything. Everything is compared before the first move.
 *
 * Edges: a build counts as tested in the channel it comes from also when that has gone on to newer versions since.
 * @throws {Error} when a version was not in the channel it comes from, when the registry has other contents than the build, or when the channel it goes to
 * has a newer version. Nothing was moved then.
 */
export async function promote(
  npm: NpmSettings,
  build: Build,
  from: Channel,
  to: Channel,
  { allowsOlder = false }: MoveOptions = {},
): Promise<readonly string[]> {
  for (const one of build.packages) {
    const there = await integrityOf(npm, build.folder, one);
    const problem =
      (await absenceProblem(npm, build, one, from)) ??
      contentProblem(one, there ?? "nothing") ??
      (allowsOlder ? undefined : await newerProblem(npm, build, one, to));
    if (problem !== undefined) throw new Error(`${problem}: nothing was moved`);
  }
  for (const one of build.packages) await runAlone(npm, build.folder, ["npm", "dist-tag", "add", idOf(one), CHANNELS[to]]);
  return build.packages.map((one) => `${idOf(one)} moved from ${from} to ${to}`);
}

/** The dist-tags of a package in the registry; none when it has no such package. @throws {Error} when it can't be asked. */
export async function tagsOf(npm: NpmSettings, { folder }: Build, name: string): Promise<Readonly<Record<string, string>>> {
  return ((await view(npm, folder, name, "dist-tags")) ?? {}) as Record<string, string>;
}

/** The checksum that the registry has under a package's version; undefined when it has no such version. @throws {Error} when it can't be asked. */
export async function integrityOf(npm: NpmSettings, folder: string, one: Manifest): Promise<string | undefined> {
  return (await view(npm, folder, idOf(one), "dist.integrity")) as string | undefined;
}

async function view(npm: NpmSettings, folder: string, what: string, field: string): Promise<unknown> {
  try {
    const text = await runAlone(npm, folder, ["npm", "view", what, field, "--json", "--prefer-online"]);
    return text.trim() === "" ? undefined : JSON.parse(text);
  } catch (error) {
    if (error instanceof Error && error.message.includes("E404")) return undefined;
    throw error;
  }
}

/** The tarball is what was packed, byte by byte. */
async function tarballProblem({ folder }: Build, { file, integrity, ...one }: Packed): Promise<string | undefined> {
  const found = `sha512-${createHash("sha512")
    .update(await readFile(join(folder, file)))
    .digest("base64")}`;
  return found === integrity ? undefined : `${idOf(one)}: the tarball has ${found}, the build's list ${integrity}`;
}

function contentProblem(one: Packed, there: string): string | undefined {
  return there === one.integrity ? undefined : `${idOf(one)}: the registry has ${there}, the build ${one.integrity}`;
}

/** A channel that never went back has had a version when it has that, or a newer one. Versions to be tried are left out of most channels: of them only the same counts. */
async function absenceProblem(npm: NpmSettings, build: Build, { name, version }: Packed, channel: Channel): Promise<string | undefined> {
  const tagged = (await tagsOf(npm, build, name))[CHANNELS[channel]];
  const wasThere = tagged === version || (tagged !== undefined && !isPrerelease(version) && comparePrecedence(tagged, version) > 0);
  return wasThere ? undefined : `${name}: channel ${channel} has ${tagged ?? "nothing"}, and never had ${version}`;
}

/** Users of a channel get no older version than they have. */
async function newerProblem(npm: NpmSettings, build: Build, { name, version }: Packed, channel: Channel): Promise<string | undefined> {
  const tagged = (await tagsOf(npm, build, name))[CHANNELS[channel]];
  if (tagged === undefined || comparePrecedence(tagged, version) <= 0) return undefined;
  return `${name}: channel ${channel} has ${tagged}, which is newer than ${version}; --allow-older moves it back`;
}

function idOf({ name, version }: Manifest): string {
  return `${name}@${version}`;
}

import { join } from "node:path";
import { compare, prerelease } from "semver";
import { integrityOf, type Build, type Packed } from "./build.ts";
import { runIsolated, type NpmSettings } from "./npm.ts";

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
  const isThere = new Map<Packed, boolean>();
  for (const one of build.packages) {
    const { tags, integrity } = await registered(npm, build, one);
    const problem =
      (await tarballProblem(build, one)) ??
      (integrity === undefined ? undefined : contentProblem(one, integrity)) ??
      (allowsOlder ? undefined : newerProblem(one, tags, channel));
    if (problem !== undefined) throw new Error(`${problem}: nothing was published`);
    isThere.set(one, integrity !== undefined);
  }
  const tag = CHANNELS[channel];
  for (const [one, moves] of isThere) {
    const command = moves
      ? ["npm", "dist-tag", "add", idOf(one), tag]
      : ["npm", "publish", join(build.folder, one.file), "--tag", tag, "--access", "public"];
    await runIsolated(npm, build.folder, command);
  }
  return Array.from(isThere, ([one, moves]) => `${idOf(one)} ${moves ? "was there, moved" : "published"} to ${channel}`);
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
    const { tags, integrity = "nothing" } = await registered(npm, build, one);
    const problem =
      absenceProblem(one, tags, from) ?? contentProblem(one, integrity) ?? (allowsOlder ? undefined : newerProblem(one, tags, to));
    if (problem !== undefined) throw new Error(`${problem}: nothing was moved`);
  }
  for (const one of build.packages) await runIsolated(npm, build.folder, ["npm", "dist-tag", "add", idOf(one), CHANNELS[to]]);
  return build.packages.map((one) => `${idOf(one)} moved from ${from} to ${to}`);
}

/** Versions by dist-tag. */
type Tags = Readonly<Record<string, string>>;

/** The dist-tags of a package in the registry; none when it has no such package. @throws {Error} when it can't be asked. */
export async function tagsOf(npm: NpmSettings, { folder }: Build, name: string): Promise<Tags> {
  return ((await view(npm, folder, name, "dist-tags")) ?? {}) as Tags;
}

/** Both in one question, as each takes npm a second. */
async function registered(npm: NpmSettings, build: Build, one: Packed): Promise<{ readonly tags: Tags; readonly integrity?: string }> {
  const there = (await view(npm, build.folder, idOf(one), "dist-tags", "dist.integrity")) as Registered | undefined;
  if (there === undefined) return { tags: await tagsOf(npm, build, one.name) };
  return { tags: there["dist-tags"], integrity: there["dist.integrity"] };
}

interface Registered {
  readonly "dist-tags": Tags;
  readonly "dist.integrity": string;
}

async function view(npm: NpmSettings, folder: string, what: string, ...fields: readonly string[]): Promise<unknown> {
  try {
    const text = await runIsolated(npm, folder, ["npm", "view", what, ...fields, "--json", "--prefer-online"]);
    return text.trim() === "" ? undefined : JSON.parse(text);
  } catch (error) {
    if (error instanceof Error && error.message.includes("E404")) return undefined;
    throw error;
  }
}

/** The tarball is what was packed, byte by byte. */
async function tarballProblem({ folder }: Build, { file, integrity, ...one }: Packed): Promise<string | undefined> {
  const found = await integrityOf(join(folder, file));
  return found === integrity ? undefined : `${idOf(one)}: the tarball has ${found}, the build's list ${integrity}`;
}

function contentProblem(one: Packed, there: string): string | undefined {
  return there === one.integrity ? undefined : `${idOf(one)}: the registry has ${there}, the build ${one.integrity}`;
}

/** A channel that never went back has had a version when it has that, or a newer one. Versions to be tried are left out of most channels: of them only the same counts. */
function absenceProblem({ name, version }: Packed, tags: Tags, channel: Channel): string | undefined {
  const tagged = tags[CHANNELS[channel]];
  const wasThere = tagged === version || (tagged !== undefined && prerelease(version) === null && compare(tagged, version) > 0);
  return wasThere ? undefined : `${name}: channel ${channel} has ${tagged ?? "nothing"}, and never had ${version}`;
}

/** Users of a channel get no older version than they have. */
function newerProblem({ name, version }: Packed, tags: Tags, channel: Channel): string | undefined {
  const tagged = tags[CHANNELS[channel]];
  if (tagged === undefined || compare(tagged, version) <= 0) return undefined;
  return `${name}: channel ${channel} has ${tagged}, which is newer than ${version}; --allow-older moves it back`;
}

function idOf({ name, version }: Omit<Packed, "file" | "integrity">): string {
  return `${name}@${version}`;
}

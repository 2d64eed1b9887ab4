import { join } from "node:path";
import type { Build, Packed } from "./build.ts";
import { runAlone, type NpmSettings } from "./npm.ts";
import type { Manifest } from "./packages.ts";

/** What users ask for (`npm install @turnout/cli@next`), by the name that npm has for it; `latest` is what they get without asking. */
export const CHANNELS: Readonly<Record<string, string>> = { stable: "latest", next: "next", nightly: "nightly" };

/**
 * Publish a build to a channel. A version that is in the registry already is not published again: only its channel moves.
 *
 * @throws {Error} when the registry has other contents under one of its versions: a version must be raised.
 */
export async function publish(npm: NpmSettings, build: Build, channel: string): Promise<readonly string[]> {
  const tag = tagOf(channel);
  const said: string[] = [];
  for (const one of build.packages) {
    const there = await integrityOf(npm, build.folder, one);
    if (there !== undefined && there !== one.integrity) throw new Error(differs(one, there));
    const id = `${one.name}@${one.version}`;
    if (there === undefined)
      await runAlone(npm, build.folder, ["npm", "publish", join(build.folder, one.file), "--tag", tag, "--access", "public"]);
    else await runAlone(npm, build.folder, ["npm", "dist-tag", "add", id, tag]);
    said.push(`${id} ${there === undefined ? "published" : "was there, moved"} to ${channel}`);
  }
  return said;
}

/**
 * Move a build to another channel, without building or publishing anything. Everything is compared before the first move.
 *
 * @throws {Error} when the channel it comes from holds another version, or the registry other contents, than the build.
 */
export async function promote(npm: NpmSettings, build: Build, from: string, to: string): Promise<readonly string[]> {
  for (const one of build.packages) {
    const tagged = await tagsOf(npm, build, one.name);
    if (tagged[tagOf(from)] !== one.version) {
      throw new Error(`${one.name}: channel ${from} has ${tagged[tagOf(from)] ?? "nothing"}, not ${one.version}: nothing was moved`);
    }
    const there = await integrityOf(npm, build.folder, one);
    if (there !== one.integrity) throw new Error(`${differs(one, there ?? "nothing")}: nothing was moved`);
  }
  for (const { name, version } of build.packages) {
    await runAlone(npm, build.folder, ["npm", "dist-tag", "add", `${name}@${version}`, tagOf(to)]);
  }
  return build.packages.map(({ name, version }) => `${name}@${version} moved from ${from} to ${to}`);
}

/** The dist-tags of a package in the registry. */
export async function tagsOf(npm: NpmSettings, { folder }: Build, name: string): Promise<Readonly<Record<string, string>>> {
  return JSON.parse(await runAlone(npm, folder, ["npm", "view", name, "dist-tags", "--json", "--prefer-online"])) as Record<string, string>;
}

/** The checksum that the registry has under a package's version; undefined when it has no such version. @throws {Error} when it can't be asked. */
export async function integrityOf(npm: NpmSettings, folder: string, { name, version }: Manifest): Promise<string | undefined> {
  try {
    const text = await runAlone(npm, folder, ["npm", "view", `${name}@${version}`, "dist.integrity", "--json", "--prefer-online"]);
    return text.trim() === "" ? undefined : (JSON.parse(text) as string);
  } catch (error) {
    if (error instanceof Error && error.message.includes("E404")) return undefined;
    throw error;
  }
}

function tagOf(channel: string): string {
  const tag = CHANNELS[channel];
  if (tag === undefined) throw new Error(`no channel ${channel}: choose ${Object.keys(CHANNELS).join(", ")}`);
  return tag;
}

function differs({ name, version, integrity }: Packed, there: string): string {
  return `${name}@${version}: the registry has ${there}, the build ${integrity}`;
}

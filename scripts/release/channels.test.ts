import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Build } from "./build.ts";
import { promote, publish } from "./channels.ts";

/** A registry in a file, by an npm of our own: versions and tags by package, and each call that wrote. */
const NPM = `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const { createHash } = require("node:crypto");
const file = __dirname + "/registry.json";
const registry = JSON.parse(readFileSync(file, "utf8"));
const [verb, what, ...more] = process.argv.slice(2);
const split = (id) => [id.slice(0, id.lastIndexOf("@")), id.slice(id.lastIndexOf("@") + 1)];
const put = (name, version, tag) => { registry.tags[name] = { ...registry.tags[name], [tag]: version }; };
if (verb === "view") {
  const integrity = registry.versions[what];
  const both = integrity && { "dist-tags": registry.tags[split(what)[0]], "dist.integrity": integrity };
  const answer = more[1] === "dist.integrity" ? both : registry.tags[what];
  if (answer === undefined) { process.stderr.write("npm error code E404\\n"); process.exit(1); }
  process.stdout.write(JSON.stringify(answer));
} else if (verb === "publish") {
  const id = "@t/" + what.slice(what.lastIndexOf("/") + 1, -4);
  registry.versions[id] = "sha512-" + createHash("sha512").update(readFileSync(what)).digest("base64");
  put(...split(id), more[1]);
  registry.calls.push("publish " + id);
} else {
  put(...split(more[0]), more[1]);
  registry.calls.push("tag " + more[0] + " " + more[1]);
}
writeFileSync(file, JSON.stringify(registry));
`;

interface Registry {
  readonly tags: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly calls: readonly string[];
}

let folder = "";
const registry = async (): Promise<Registry> => JSON.parse(await readFile(join(folder, "registry.json"), "utf8")) as Registry;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-channels-"));
  await writeFile(join(folder, "npm"), NPM, { mode: 0o755 });
  await writeFile(join(folder, "registry.json"), JSON.stringify({ versions: {}, tags: {}, calls: [] }));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Pack packages, named `name@version`. */
async function build(...ids: readonly string[]): Promise<Build> {
  const packages = ids.map(async (id) => {
    const [name = "", version = ""] = id.split("@");
    const file = `${id}.tgz`;
    await writeFile(join(folder, file), `the tarball of ${id}`);
    const integrity = `sha512-${createHash("sha512").update(`the tarball of ${id}`).digest("base64")}`;
    return { name: `@t/${name}`, version, file, integrity };
  });
  return { folder, packages: await Promise.all(packages) };
}

const npm = (): { nodeFolder: string } => ({ nodeFolder: folder });

describe("publishing", () => {
  it("publishes what was packed, and goes on where it was cut off", async () => {
    await publish(npm(), await build("core@0.1.0"), "next");
    expect(await publish(npm(), await build("core@0.1.0", "cli@0.1.0"), "next")).toEqual([
      "@t/core@0.1.0 was there, moved to next",
      "@t/cli@0.1.0 published to next",
    ]);
    expect((await registry()).tags).toEqual({ "@t/core": { next: "0.1.0" }, "@t/cli": { next: "0.1.0" } });
  });

  it("publishes nothing when one tarball is not what was packed", async () => {
    const packed = await build("core@0.1.0", "cli@0.1.0");
    await writeFile(join(folder, "cli@0.1.0.tgz"), "another");
    await expect(publish(npm(), packed, "next")).rejects.toThrow(
      /^@t\/cli@0.1.0: the tarball has sha512-\S+, the build's list sha512-\S+: nothing was published$/,
    );
    expect((await registry()).calls).toEqual([]);
  });

  it("publishes nothing when the registry has other contents under one version", async () => {
    await publish(npm(), await build("cli@0.1.0"), "next");
    const { packages } = await build("core@0.1.0", "cli@0.1.0");
    await writeFile(join(folder, "cli@0.1.0.tgz"), "packed again");
    const integrity = `sha512-${createHash("sha512").update("packed again").digest("base64")}`;
    const again = { folder, packages: packages.map((one) => (one.name === "@t/cli" ? { ...one, integrity } : one)) };
    await expect(publish(npm(), again, "next")).rejects.toThrow(/^@t\/cli@0.1.0: the registry has .*: nothing was published$/);
    expect((await registry()).calls).toEqual(["publish @t/cli@0.1.0"]);
  });

  it("moves a channel back to an older version only where that is asked for", async () => {
    const [old, newer] = [await build("core@0.1.0", "cli@0.9.0"), await build("core@0.1.0", "cli@0.10.0")];
    for (const one of [old, newer]) await publish(npm(), one, "next");
    const before = await registry();
    await expect(publish(npm(), old, "next")).rejects.toThrow(
      /^@t\/cli: channel next has 0.10.0, which is newer than 0.9.0; --allow-older moves it back: nothing was published$/,
    );
    expect(await registry()).toEqual(before);
    await publish(npm(), old, "next", { allowsOlder: true });
    expect((await registry()).tags["@t/cli"]).toEqual({ next: "0.9.0" });
  });
});

describe("promotion", () => {
  it("moves a build that was in the channel, also when the channel has gone on since", async () => {
    const [old, newer] = [await build("core@0.1.0", "cli@0.1.0"), await build("core@0.1.0", "cli@0.1.1")];
    for (const one of [old, newer]) await publish(npm(), one, "next");
    await promote(npm(), old, "next", "stable");
    expect((await registry()).tags).toEqual({
      "@t/core": { next: "0.1.0", latest: "0.1.0" },
      "@t/cli": { next: "0.1.1", latest: "0.1.0" },
    });
  });

  it("moves stable back only where that is asked for", async () => {
    const [old, newer] = [await build("core@0.1.0", "cli@0.1.0"), await build("core@0.1.0", "cli@0.1.1")];
    for (const one of [old, newer]) await publish(npm(), one, "next");
    await promote(npm(), newer, "next", "stable");
    const before = await registry();
    await expect(promote(npm(), old, "next", "stable")).rejects.toThrow("channel stable has 0.1.1, which is newer than 0.1.0");
    expect(await registry()).toEqual(before);
    await promote(npm(), old, "next", "stable", { allowsOlder: true });
    expect((await registry()).tags["@t/cli"]).toEqual({ next: "0.1.1", latest: "0.1.0" });
  });

  it.each([
    ["was never published", ["core@0.1.0"], "@t/core: channel next has nothing, and never had 0.1.0"],
    ["is newer than the channel", ["core@0.1.0", "core@0.2.0"], "@t/core: channel next has 0.1.0, and never had 0.2.0"],
    ["was in nightly only", ["core@0.1.1", "core@0.1.1-nightly.1"], "@t/core: channel next has 0.1.1, and never had 0.1.1-nightly.1"],
  ])("moves nothing of a build that %s", async (_, ids, message) => {
    const [wanted = ""] = ids.slice(-1);
    for (const id of ids.slice(0, -1)) await publish(npm(), await build(id), "next");
    if (ids.length > 1) await publish(npm(), await build(wanted), "nightly");
    const before = await registry();
    await expect(promote(npm(), await build(wanted), "next", "stable")).rejects.toThrow(`${message}: nothing was moved`);
    expect(await registry()).toEqual(before);
  });

  it("moves nothing when the registry has other contents than one package of the build", async () => {
    const packed = await build("core@0.1.0", "cli@0.1.0");
    await publish(npm(), packed, "next");
    const forged = packed.packages.map((one) => (one.name === "@t/cli" ? { ...one, integrity: "sha512-x" } : one));
    await expect(promote(npm(), { folder, packages: forged }, "next", "stable")).rejects.toThrow(
      /^@t\/cli@0.1.0: the registry has .* nothing was moved$/,
    );
    expect((await registry()).calls.filter((call) => call.endsWith("latest"))).toEqual([]);
  });
});

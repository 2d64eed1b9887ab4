import { TestClock } from "@turnout/core/testing";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFakeExec } from "@turnout/host/testing";
import { ProxyError, type World } from "@turnout/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { chooseBackend, KNOWN_BACKENDS, loadBackend, loadKit, type BackendChoice, namesOn } from "./registry.ts";
import { TOY_BACKEND } from "./test-support/toy-environment.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-registry-"));
  await writeFile(join(directory, "toy.mjs"), TOY_BACKEND);
});

afterEach(() => rm(directory, { recursive: true }));

function choice(overrides: Partial<BackendChoice>): BackendChoice {
  const silent = (): void => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const world: World = { exec: createFakeExec([]), clock: new TestClock(0), log };
  return {
    spec: "auto",
    mode: "",
    world,
    env: { workingDirectory: directory, signal: new AbortController().signal, platform: "linux" },
    host: "ignored",
    takesOver: false,
    ...overrides,
  };
}

test("every known backend loads, and is called what it is listed as", async () => {
  for (const { name, proxyMode } of KNOWN_BACKENDS) {
    const module = await loadBackend(name, directory);
    expect([module.name, module.proxyMode]).toEqual([name, proxyMode]);
  }
});

test("a backend that leaves things out loads: they have defaults", async () => {
  await writeFile(join(directory, "short.mjs"), TOY_BACKEND.replace('"hairpin", ', "").replace('affinityScope: "row",', ""));
  expect((await loadBackend("./short.mjs", directory)).name).toBe("toy");
});

test("every known backend has a host in memory, but for the one that is played in the kernel", async () => {
  const kits = await Promise.all(KNOWN_BACKENDS.map(async ({ name }) => [name, await loadKit(name, undefined, directory)] as const));
  const hosts = kits.flatMap(([, kit]) => ("createFakeHost" in kit ? [kit.createFakeHost()] : []));
  for (const host of hosts) {
    expect(host.own()).toEqual([]);
    expect(host.external()).not.toEqual([]);
  }
  const inKernel = kits.flatMap(([name, kit]) => ("examine" in kit ? [name] : []));
  expect(inKernel).toEqual(["ebpf"]);
});

test.each([
  ["a relative path", "./toy.mjs"],
  ["a path through the parent", "../NAME/toy.mjs"],
])("%s", async (_name, spec) => {
  expect((await loadBackend(spec.replace("NAME", directory.split("/").at(-1) ?? ""), directory)).name).toBe("toy");
});

test("an installed package", async () => {
  const home = join(directory, "node_modules", "@third", "backend-toy");
  await mkdir(home, { recursive: true });
  await writeFile(join(home, "package.json"), JSON.stringify({ name: "@third/backend-toy", type: "module", exports: "./index.mjs" }));
  await writeFile(join(home, "index.mjs"), TOY_BACKEND);
  expect((await loadBackend("@third/backend-toy", directory)).name).toBe("toy");
});

test.each([
  ["no default export", "export const x = 1;", /this is no backend module: nothing is exported: backend .\/bad.mjs/],
  ["another contract", TOY_BACKEND.replace("contract: 2", "contract: 1"), /this is no backend module: contract 1, this is 2: backend/],
  ["a capability that is false", TOY_BACKEND.replace("[name, true]", "[name, false]"), /capabilities\.drop is false, not true or a text/],
  ["a variant nobody has", TOY_BACKEND.replace('affinityScope: "row"', 'affinityScope: "rows"'), /affinityScope is "rows", not "row" or/],
  ["a missing function", TOY_BACKEND.replace("parseOptions:", "parsesOptions:"), /parseOptions is missing: backend .\/bad.mjs/],
  ["a syntax error", "export default {", /can't be loaded .*: backend .\/bad.mjs: -v shows where/],
])("a module with %s is refused", async (_name, text, message) => {
  await writeFile(join(directory, "bad.mjs"), text);
  await expect(loadBackend("./bad.mjs", directory)).rejects.toThrow(message);
});

test("kube-proxy's word for a backend is its name too", async () => {
  expect((await loadBackend("nftables", directory)).name).toBe("nft");
});

test("a path that isn't there is said without who looked for it", async () => {
  await expect(loadBackend("./nope.mjs", directory)).rejects.toThrow(/\(Cannot find module '.*nope\.mjs'\): backend \.\/nope\.mjs/);
});

test("a platform has the backends that can have left something there", () => {
  expect(namesOn("win32")).toEqual(["userspace", "winkernel"]);
  expect(namesOn("linux")).toEqual(KNOWN_BACKENDS.map(({ name }) => name).filter((name) => name !== "winkernel"));
});

async function nameFor(overrides: Partial<BackendChoice>): Promise<string> {
  return (await chooseBackend(choice(overrides))).module.name;
}

test("auto on a host that can run none takes the first where it is to be shown alone, and none where it is to run", async () => {
  const { log } = choice({}).world;
  const missing = (): never => {
    throw new ProxyError("tool_missing", "it is not installed");
  };
  const world: World = { exec: { run: () => Promise.resolve().then(missing), open: missing }, clock: new TestClock(0), log };
  const chosen = await chooseBackend(choice({ host: "wanted", world }));
  expect([chosen.module.name, chosen.because]).toEqual([
    "nft",
    expect.stringMatching(/^this host can run none, and it is the first: \[tool_missing\] /),
  ]);
  await expect(chooseBackend(choice({ host: "needed", world }))).rejects.toMatchObject({ code: "tool_missing" });
});

test("auto takes the backend of the configured mode, or the first", async () => {
  expect(await nameFor({ mode: "nftables" })).toBe("nft");
  expect(await nameFor({})).toBe("nft");
  expect(await nameFor({ spec: "./toy.mjs", mode: "nftables" })).toBe("toy");
  expect(await nameFor({ mode: "kernelspace" })).toBe("winkernel");
  await expect(chooseBackend(choice({ mode: "userland" }))).rejects.toMatchObject({ code: "invalid_object" });
});

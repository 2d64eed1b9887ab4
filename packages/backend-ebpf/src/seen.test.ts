import { Ledger } from "@turnout/core";
import type { LeftObjects } from "@turnout/core";
import type { Backend, Context, Drift } from "@turnout/core/backend";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ebpfModule } from "./module.ts";
import type { EbpfObject } from "./objects.ts";
import type { EbpfFacts } from "./options.ts";
import type { Step } from "./plan.ts";
import { LinkThing, MapThing } from "./testing/kernel-things.ts";
import { ownRoot } from "./testing/inventory.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/fake-host.ts";
import { stateOf } from "./test-support/states.ts";

const { signal } = new AbortController();
let host: EbpfFakeHost;
let backend: Backend<EbpfFacts, EbpfObject, Step>;
let ledger: Ledger<EbpfObject>;
let stop: AbortController;
let drifts: Drift[];

beforeEach(async () => {
  host = createFakeHost();
  const options = ebpfModule.parseOptions({});
  const { facts } = await ebpfModule.probe(options, host.world, signal);
  backend = (await ebpfModule.open(options, host.world, signal)).family("IPv4");
  ledger = new Ledger();
  const { rows, node } = stateOf(
    [
      { name: "web", number: 1, local: 2 },
      { name: "api", number: 2, local: 1 },
    ],
    "IPv4",
  );
  const context: Context<EbpfFacts> = { node, host: facts };
  ledger.adopt(await backend.observe(signal));
  ledger.setAll(backend.skeleton(context), new Map([...rows].map(([key, row]) => [key, backend.render(row, context)])));
  await apply();
  stop = new AbortController();
  drifts = [];
  void follow();
  await host.advance(1_000);
});
afterEach(() => stop.abort());

async function apply(): Promise<number> {
  const delta = ledger.delta(host.world.clock.nowMs());
  ledger.commit(delta, await backend.apply(backend.plan(delta), signal));
  return delta.put.length + delta.remove.length;
}

async function follow(): Promise<void> {
  for await (const event of backend.watch?.(stop.signal) ?? []) if (event.kind === "drift") drifts.push(event);
}

/** What is pinned under a name. */
function pinned(name: string): unknown {
  return host.kernel.files.pins(ownRoot(host.kernel)).find(([path]) => path.endsWith(`/${name}`))?.[1];
}

/** Believe what was seen, and mend it. */
async function fix(left: LeftObjects | undefined): Promise<readonly string[]> {
  const changed = left === undefined ? [] : ledger.trust(left);
  expect(await apply()).toBe(changed.length);
  return changed.map(({ id }) => id);
}

describe("a foreign hand", () => {
  it("is told of within tenths of a second where it detaches a program, and just that is mended", async () => {
    const link = pinned("turnout_conn4");
    if (!(link instanceof LinkThing)) throw new Error("there is a link");
    link.detach();
    await host.advance(300);
    expect(drifts.map(({ what }) => what)).toEqual(["turnout_conn4 was detached or replaced; the kernel does not tell by whom"]);
    expect(await fix(drifts[0]?.left)).toEqual(["link turnout_conn4"]);
    await host.advance(1_000);
    expect(drifts).toHaveLength(1);
  });

  it("is told of where it empties a map, of which alone is read what is left", async () => {
    const map = pinned("services");
    if (!(map instanceof MapThing)) throw new Error("there is a map");
    for (const [key] of map.map.all()) map.map.delete(key);
    await host.advance(300);
    expect(drifts.map(({ what }) => what)).toEqual(["map services has fewer elements; the kernel does not tell by whom"]);
    const before = (await backend.observe(signal))?.objects;
    const changed = await fix(drifts[0]?.left);
    expect(changed.length).toBeGreaterThan(1);
    expect(changed.every((id) => id.startsWith("service ") && before?.has(id) === false)).toBe(true);
    await host.advance(1_000);
    expect(drifts).toHaveLength(1);
  });

  it("is told of a few seconds later where it replaces a value, and that it was mended is no news", async () => {
    const map = pinned("endpoints");
    if (!(map instanceof MapThing)) throw new Error("there is a map");
    const [[key, { bytes }] = ["", { bytes: Buffer.alloc(0) }]] = map.map.all();
    map.map.update(key, Buffer.alloc(bytes.length), "any");
    await host.advance(2_000);
    expect(drifts.map(({ what }) => what)).toEqual(["elements of map endpoints were replaced; the kernel does not tell by whom"]);
    expect(await fix(drifts[0]?.left)).toEqual([expect.stringMatching(/^list /)]);
    await host.advance(5_000);
    expect(drifts).toHaveLength(1);
  });

  it("is told of where it replaces a value while we write other elements all the time", async () => {
    const map = pinned("services");
    if (!(map instanceof MapThing)) throw new Error("there is a map");
    const [[key, { bytes }] = ["", { bytes: Buffer.alloc(0) }]] = map.map.all();
    map.map.update(key, Buffer.alloc(bytes.length), "any");
    const object = [...((await backend.observe(signal))?.objects.values() ?? [])].find(({ kind }) => kind === "list");
    if (object === undefined) throw new Error("there is a list");
    for (let writes = 0; writes < 20; writes++) {
      await backend.apply({ steps: [{ verb: "write", object }] }, signal);
      await host.advance(50);
    }
    expect(drifts.map(({ what }) => what)).toEqual(["elements of map services were replaced; the kernel does not tell by whom"]);
  });

  it("may be anybody's where pins of maps go, so that everything is compared", async () => {
    const path = host.kernel.files.pins(ownRoot(host.kernel)).find(([name]) => name.endsWith("/affinity"))?.[0] ?? "";
    host.kernel.files.remove(path);
    await host.advance(300);
    expect(drifts[0]?.what).toContain("pins came or went in v1-");
    expect(drifts[0]?.left).toBeUndefined();
  });
});

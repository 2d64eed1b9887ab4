import { flushPromises, TestClock } from "@turnout/core/testing";
import type { FingerprintChanges } from "@turnout/host";
import type { BpfMap, Elements } from "@turnout/host/bpf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EbpfMap, WrittenMap } from "../bytes/elements.ts";
import { STRUCTS } from "../bytes/layout.ts";
import { Watches } from "./watches.ts";

/** What reading the map takes, in ms: it is large. */
const READ_MS = 100;

let clock: TestClock;
let cpuMs: number;
let reads: number;
let value: Buffer;
/** Maps that somebody has opened by their pins. */
let opened: Set<WrittenMap>;
/** Names in the folder of links. */
let links: string[];
let stop: AbortController;
let reported: string[];
let watches: Watches;
/** How often a link was looked at. */
let linkLooks: number;

beforeEach(async () => {
  clock = new TestClock();
  [cpuMs, reads, linkLooks] = [0, 0, 0];
  value = Buffer.alloc(STRUCTS.endpoint.bytes, 1);
  opened = new Set();
  links = ["turnout_conn4"];
  stop = new AbortController();
  reported = [];
  const endpoints = { read, memoryBytes: () => 96 } as unknown as BpfMap;
  const link = { info: () => ({ id: 1, programId: 2, kind: "cgroup", cgroupId: 3n, hook: "connect4" }), close: () => undefined };
  watches = new Watches({
    maps: {
      open: { root: "/sys/fs/bpf/turnout", maps: new Map<EbpfMap, BpfMap>([["endpoints", endpoints]]) },
      folder: "v1",
      programs: { sockets: "s", packets: "p" },
      takeOpenings() {
        const taken = new Set(opened);
        opened.clear();
        return taken;
      },
    },
    world: {
      clock: { nowMs: () => clock.nowMs(), sleep: (ms, signal) => clock.sleep(ms, signal), cpuMs: () => cpuMs },
      bpf: {
        openLink() {
          linkLooks += 1;
          return link;
        },
      } as never,
      pinFiles: { names: (path: string) => (path.endsWith("/links") ? links : []), exists: () => true } as never,
    },
    filtered: () => [],
  });
  for (const changes of watches.follow(stop.signal)) void hear(changes);
  // The first digest is what the next ones are compared with, and how dear they are is learnt.
  await clock.advance(30_000);
});
afterEach(() => stop.abort());

async function* read(): AsyncGenerator<Elements> {
  reads += 1;
  cpuMs += READ_MS;
  await Promise.resolve();
  yield { count: 1, keys: Buffer.alloc(STRUCTS.place.bytes, 7), values: value };
}

async function hear(all: AsyncIterable<FingerprintChanges>): Promise<void> {
  for await (const changes of all) reported.push(...changes.keys());
}

describe("what a large map holds", () => {
  it("is looked at rarely, and within tenths of a second once somebody has opened the map by its pin", async () => {
    const before = reads;
    value = Buffer.alloc(value.length, 2);
    await clock.advance(2_000);
    expect([reads - before, reported]).toEqual([0, []]);
    opened.add("endpoints");
    await clock.advance(200);
    expect(reported).toEqual([expect.stringMatching(/^content endpoints \d+$/)]);
  });

  it("is looked at for some seconds then, in a twentieth of a core, however often the map is opened", async () => {
    const before = reads;
    for (let times = 0; times < 40; times += 1) {
      opened.add("endpoints");
      await clock.advance(100);
    }
    // What a read takes is learnt by and by, so it is somewhat more at first.
    expect(reads - before).toBeGreaterThan(2);
    expect((reads - before) * READ_MS).toBeLessThan(0.15 * 4_000);
    await clock.advance(6_000);
    const rested = reads;
    await clock.advance(5_000);
    expect(reads).toBe(rested);
  });

  it("is looked at no sooner because somebody has opened another map", async () => {
    const before = reads;
    opened.add("services");
    await clock.advance(2_000);
    expect(reads).toBe(before);
  });
});

it("a link's pin that is gone is told of once", async () => {
  links = [];
  await clock.advance(1_000);
  await flushPromises();
  expect(reported).toEqual(["pin turnout_conn4"]);
});

it.each([
  ["elements of maps", { kind: "service", key: "10.96.0.1:80/TCP", value: {} }, 0],
  ["what is attached", { kind: "link", key: "turnout_conn4", value: "" }, 2],
])("a write of %s has places looked at as often as it can change them", async (_what, object, looks) => {
  const before = linkLooks;
  await watches.during([{ verb: "delete", object }] as never, async () => undefined);
  expect(linkLooks - before).toBe(looks);
});

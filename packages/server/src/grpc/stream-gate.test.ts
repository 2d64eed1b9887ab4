import type { Issue, ProxyError } from "@turnout/core";
import { flushPromises, TestClock } from "@turnout/core/testing";
import { describe, expect, test } from "vitest";
import { ALL_RIGHTS, certificateRights, type PeerRights } from "./peer-rights.ts";
import { StreamGate, type StreamSlot } from "./stream-gate.ts";

const rightsOf = (CN: string): PeerRights =>
  certificateRights(new Set(["relay"]))({ subject: { CN } } as unknown as Parameters<ReturnType<typeof certificateRights>>[0]);
const NODE = rightsOf("system:node:a");
const OTHER = rightsOf("system:node:b");
const OUTSIDER = rightsOf("nobody");
const RELAY = rightsOf("relay");

function setUp(limits: { readonly streamsMax?: number; readonly streamsOfClientMax?: number } = {}) {
  const clock = new TestClock();
  const issues: Issue[] = [];
  const gate = new StreamGate({ streamsMax: 100, streamsOfClientMax: 3, ...limits, clock, report: (issue) => void issues.push(issue) });
  const ended: string[] = [];
  const arrive = (rights: PeerRights): StreamSlot => gate.arrive(rights, (error: ProxyError) => void ended.push(error.message));
  /** As a stream that says at once what it wants. */
  const watch = (rights: PeerRights, nodeName: string): StreamSlot => {
    const slot = arrive(rights);
    try {
      slot.assign(nodeName);
    } catch (error) {
      slot.leave();
      throw error;
    }
    return slot;
  };
  return { clock, gate, issues, ended, arrive, watch };
}

describe("a share of streams", () => {
  test("is by certificate: whoever has it gets no more, silent or not, and others are not touched", () => {
    const { gate, issues, arrive, watch } = setUp();
    const first = watch(NODE, "a");
    watch(NODE, "a");
    arrive(NODE);
    for (let more = 0; more < 5; more++)
      expect(() => arrive(NODE)).toThrow('there are 3 streams already, and no more at a time: the certificate of "system:node:a"');
    expect(issues).toMatchObject([
      { object: 'the certificate of "system:node:a"', what: expect.stringContaining("refused: it has 3") as string },
    ]);
    watch(OTHER, "b");
    expect([gate.streams, gate.silent]).toEqual([3, 1]);
    first.leave();
    watch(NODE, "a");
    expect(() => arrive(NODE)).toThrow("there are 3 streams");
    expect(issues).toHaveLength(1);
  });

  test("of who may ask for any node is by node, and by the cluster", () => {
    const { watch } = setUp();
    for (const rights of [RELAY, ALL_RIGHTS])
      for (const name of ["a", "b", ""]) {
        for (let stream = 0; stream < 3; stream++) watch(rights, name);
        expect(() => watch(rights, name)).toThrow(name === "" ? "for the cluster" : `for node ${name}`);
      }
  });

  test("moves with a stream that wants another node", () => {
    const { gate, watch } = setUp({ streamsOfClientMax: 1 });
    const slot = watch(RELAY, "a");
    slot.assign("b");
    watch(RELAY, "a").leave();
    expect(() => watch(RELAY, "b")).toThrow("for node b");
    slot.leave();
    watch(RELAY, "b");
    expect(gate.streams).toBe(1);
  });

  test("is reported again when all of it had been let go of", () => {
    const { issues, watch } = setUp({ streamsOfClientMax: 1 });
    for (let round = 0; round < 2; round++) {
      const slot = watch(NODE, "a");
      expect(() => watch(NODE, "a")).toThrow("no more at a time");
      expect(() => watch(NODE, "a")).toThrow("no more at a time");
      slot.leave();
    }
    expect(issues).toHaveLength(2);
  });
});

describe("all streams together", () => {
  test("count after their hello: who has no right holds none of them", () => {
    const { gate, arrive, watch } = setUp({ streamsMax: 2 });
    for (let stream = 0; stream < 3; stream++) arrive(OUTSIDER);
    watch(NODE, "a");
    watch(OTHER, "b");
    expect(() => watch(NODE, "a")).toThrow("this node-state server serves 2 streams already, and no more at a time");
    expect(gate.streams).toBe(2);
  });

  test("give their room back, also when they were refused", () => {
    const { gate, watch } = setUp({ streamsMax: 1 });
    const slot = watch(NODE, "a");
    expect(() => watch(OTHER, "b")).toThrow("serves 1 streams");
    slot.leave();
    watch(OTHER, "b").leave();
    expect([gate.streams, gate.silent]).toEqual([0, 0]);
  });
});

describe("a silent stream", () => {
  test("has 10 s; one that spoke has all the time", async () => {
    const { clock, gate, ended, arrive, watch } = setUp();
    watch(NODE, "a");
    arrive(NODE);
    await clock.advance(9_999);
    expect(ended).toEqual([]);
    await clock.advance(1);
    expect(ended).toEqual(["[timed_out] no first message came: it says whose state is wanted"]);
    expect([gate.streams, gate.silent]).toEqual([1, 0]);
  });

  test("goes when a thousand came after it, so that whoever speaks at once gets in", async () => {
    const { clock, gate, ended, arrive, watch } = setUp();
    const first = arrive(ALL_RIGHTS);
    for (let more = 0; more < 999; more++) arrive(ALL_RIGHTS);
    expect(ended).toEqual([]);
    watch(NODE, "a");
    expect(ended).toEqual(["[timed_out] no first message came, and others wait: it says whose state is wanted"]);
    expect(gate.silent).toBe(999);
    first.leave();
    expect(gate.silent).toBe(999);
    await clock.advance(10_000);
    expect(gate.silent).toBe(0);
  });

  test("that leaves holds nothing, and no timer", async () => {
    const { clock, gate, arrive } = setUp();
    arrive(NODE).leave();
    await flushPromises();
    expect([gate.silent, clock.sleeping]).toEqual([0, 0]);
  });
});

import { TestClock } from "@turnout/core/testing";
import { systemClock } from "@turnout/core/process";
import { runConfig, loadConfig, type RawFlags, withTimeout } from "@turnout/client/daemon";
import { OBJECT_KINDS, ProxyError, type Log } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { NodeStateSource } from "./node-state-source.ts";

const silent = (): void => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

function make(clock: TestClock, flags: RawFlags = {}, source = "kube", logger: Log = log): NodeStateSource {
  const config = runConfig(loadConfig({ flags, file: undefined, hostname: "node1" }), { name: "nftables" });
  return new NodeStateSource({
    source,
    tls: undefined,
    config,
    env: { variables: {}, hostname: "node1", version: "1" },
    clock,
    log: logger,
  });
}

function node(podCIDRs: readonly string[] = []): unknown {
  return { metadata: { name: "node1" }, spec: { podCIDRs }, status: { addresses: [{ type: "InternalIP", address: "172.18.0.1" }] } };
}

describe("waiting for the own Node", () => {
  test("ends when it has addresses", async () => {
    const clock = new TestClock(0);
    const state = make(clock);
    let isKnown = false;
    const waiting = state.nodeKnown(new AbortController().signal).then(() => (isKnown = true));
    state.store.upsert("Node", { metadata: { name: "node1" }, status: {} });
    state.store.upsert("Node", { ...(node() as object), metadata: { name: "node2" } });
    await clock.advance(1_000);
    expect(isKnown).toBe(false);
    state.store.upsert("Node", node());
    await waiting;
    expect(isKnown).toBe(true);
  });

  test("in mode NodeCIDR it needs pod CIDRs too", async () => {
    const clock = new TestClock(0);
    const state = make(clock, { "detect-local-mode": "NodeCIDR" });
    state.store.upsert("Node", node());
    const waiting = state.nodeKnown(new AbortController().signal);
    await clock.advance(1_000);
    expect(clock.sleeping).toBe(1);
    state.store.upsert("Node", node(["10.1.1.0/24"]));
    await waiting;
    expect(clock.sleeping).toBe(0);
  });

  test("is over after half a minute, for Services matter more", async () => {
    const clock = new TestClock(0);
    let isOver = false;
    const waiting = make(clock)
      .nodeKnown(new AbortController().signal)
      .then(() => (isOver = true));
    await clock.advance(29_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await waiting;
    expect(isOver).toBe(true);
  });

  test("being stopped is no failure", async () => {
    const stop = new AbortController();
    const waiting = make(new TestClock(0)).nodeKnown(stop.signal);
    stop.abort();
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe("the own Node", () => {
  test("is told of when its addresses change or it goes, and of nothing else", () => {
    const lines: string[] = [];
    const note = (message: string, fields: unknown): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
    const { store } = make(new TestClock(0), {}, "kube", { ...log, info: note, warn: note });
    const address = (ip: string): unknown => ({
      metadata: { name: "node1" },
      status: { addresses: [{ type: "InternalIP", address: ip }] },
    });
    store.upsert("Node", { metadata: { name: "node1" }, status: {} });
    store.upsert("Node", address("172.18.0.1"));
    store.upsert("Node", {
      ...(address("172.18.0.1") as object),
      metadata: { name: "node1", labels: { "topology.kubernetes.io/zone": "a" } },
    });
    store.upsert("Node", { ...(address("172.18.0.7") as object), metadata: { name: "node2" } });
    expect(lines).toEqual([]);
    store.upsert("Node", address("172.18.0.2"));
    store.upsert("Node", { metadata: { name: "node1" }, status: {} });
    store.remove("Node", "", "node1");
    store.upsert("Node", address("172.18.0.2"));
    expect(lines).toEqual([
      'this node\'s addresses changed, the new ones are used {"node":"node1","before":["172.18.0.1"],"addresses":["172.18.0.2"]}',
      'this node\'s Node object is gone, what it said last is still used {"node":"node1"}',
    ]);
  });
});

describe("source and body", () => {
  test("a source that can't work ends the body, and its reason is the outcome", async () => {
    const state = make(new TestClock(0), {}, "file:/nonexistent/turnout");
    let wasStopped = false;
    const body = async (signal: AbortSignal): Promise<void> => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      wasStopped = true;
    };
    await expect(state.during(body, new AbortController().signal)).rejects.toMatchObject({ code: "not_found" });
    expect(wasStopped).toBe(true);
  });
});

describe("withTimeout", () => {
  const never = (signal: AbortSignal): Promise<void> =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new ProxyError("canceled", "stopped"))));

  test.each([
    ["fails when stopped", never],
    [
      "ends quietly when stopped",
      (signal: AbortSignal): Promise<void> => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
    ],
  ])("names what was waited for, when the body %s", async (_name, body) => {
    const clock = new TestClock(0);
    const outcome = withTimeout("source kube", 500, clock, new AbortController().signal, body).catch((error: unknown) => String(error));
    await clock.advance(500);
    expect(await outcome).toContain("[timed_out] nothing complete within 0.5 s: source kube");
  });

  test("says what the body failed with when its time was over", async () => {
    const clock = new TestClock(0);
    const body = (signal: AbortSignal): Promise<void> =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new ProxyError("tool_failed", "nft crashes"))));
    const outcome = withTimeout("source kube", 500, clock, new AbortController().signal, body).then(String, String);
    await clock.advance(500);
    expect(await outcome).toContain("[timed_out] not done within 0.5 s: [tool_failed] nft crashes: --timeout waits longer");
  });

  test("says what is known of the reason by then", async () => {
    const clock = new TestClock(0);
    const state = make(clock);
    const hint = (): string | undefined => (state.lacksNode ? "no Node object" : undefined);
    const late = async (): Promise<string> => {
      const outcome = withTimeout("source kube", 500, clock, new AbortController().signal, never, hint).then(String, String);
      await clock.advance(500);
      return await outcome;
    };
    expect(await late()).toContain("source kube: is it reachable?");
    for (const kind of OBJECT_KINDS) state.store.markSynced(kind);
    expect(await late()).toMatch(/source kube: no Node object$/);
    state.store.upsert("Node", node());
    expect(await late()).toContain("is it reachable?");
  });

  test("hands the body's own failure on, and leaves no timer behind", async () => {
    const clock = new TestClock(0);
    const failing = (): Promise<void> => Promise.reject(new ProxyError("tool_failed", "no"));
    await expect(withTimeout("x", 500, clock, new AbortController().signal, failing)).rejects.toMatchObject({ code: "tool_failed" });
    await expect(withTimeout("x", 500, clock, new AbortController().signal, () => Promise.resolve())).resolves.toBeUndefined();
    expect(clock.sleeping).toBe(0);
  });

  test("being stopped from outside is not a timeout", async () => {
    const stop = new AbortController();
    const outcome = withTimeout("x", 60_000, systemClock(), stop.signal, never).catch((error: unknown) => error);
    stop.abort();
    expect(await outcome).toMatchObject({ code: "canceled" });
  });
});

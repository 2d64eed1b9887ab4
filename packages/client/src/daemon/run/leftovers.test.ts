import { ProxyError, type BackendModule, type Leftover } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVICE, ToyProxy } from "../../test-support/toy-proxy.ts";
import { ToyKernel, ToyLog, flushPromises, toyFull, toyModule, toyRow, withBackends } from "../../test-support/toys.ts";
import { clearLeftovers, ReportedCauses, type Cleared, type Dataplane } from "./leftovers.ts";

const REPORTED_KEPT = "warn rules of another proxy are in force beside ours";
const REPORTED_REMOVED = "info the rules of a former proxy were removed, ours are in force";

describe("leftovers of one family", () => {
  let log: ToyLog;
  let removed: string[];
  let reported: ReportedCauses;
  const left = (what: string): Leftover => ({
    what,
    remove: async () => void removed.push(what),
  });
  const finder = (name: string, leftovers: () => Promise<readonly Leftover[]>): Dataplane => ({
    name,
    isInUse: false,
    visit: (work) => work({ leftovers }),
  });
  const refuses = (code: "tool_missing" | "already_exists"): Promise<never> => Promise.reject(new ProxyError(code, "it says no"));
  const clear = (dataplanes: readonly Dataplane[], keptBecause?: string, signal = new AbortController().signal): Promise<Cleared> =>
    clearLeftovers({ family: "IPv4", dataplanes, keptBecause, mayWait: true, reported, log }, signal);

  beforeEach(() => {
    log = new ToyLog();
    removed = [];
    reported = new ReportedCauses();
  });

  test("are removed, each with a line", async () => {
    await clear([finder("a", async () => [left("table x"), left("table y")]), finder("b", async () => [])]);
    expect(removed).toEqual(["table x", "table y"]);
    expect(log.lines).toEqual([`${REPORTED_REMOVED} family=IPv4 what=table x`, `${REPORTED_REMOVED} family=IPv4 what=table y`]);
  });

  test.each([true, false])("are told whether there is time to wait for connections: %s", async (mayWait) => {
    const heard: unknown[] = [];
    const patient: Leftover = { what: "x", remove: async (_, may) => void heard.push(may) };
    const dataplanes = [finder("a", async () => [patient])];
    await clearLeftovers({ family: "IPv4", dataplanes, keptBecause: undefined, mayWait, reported, log }, new AbortController().signal);
    expect(heard).toEqual([mayWait]);
  });

  test("are told and left alone where somebody wants them to stay", async () => {
    await clear([finder("a", async () => [left("table x")])], "because");
    expect([removed, log.lines]).toEqual([[], [`${REPORTED_KEPT} family=IPv4 what=table x hint=because`]]);
  });

  test("a tool that isn't there is one line, one that fails another, and neither stops the others", async () => {
    const stuck = { what: "chains", remove: () => refuses("already_exists") };
    const finders = [
      finder("a", () => refuses("tool_missing")),
      finder("b", async () => [stuck]),
      finder("c", async () => [left("table x")]),
    ];
    await clear(finders);
    expect(removed).toEqual(["table x"]);
    expect(log.lines).toEqual([
      "info rules of a former proxy can't be looked for: its tool is not here family=IPv4 backend=a error=[tool_missing] it says no",
      "warn rules of a former proxy may still be in force family=IPv4 backend=b error=[already_exists] it says no hint=turnout cleanup --backend b removes its rules",
      `${REPORTED_REMOVED} family=IPv4 what=table x`,
    ]);
  });

  test("a place that can't be seen keeps no other from being cleared, and one cause is one line, whomever it stops", async () => {
    const denied = (what: string): ProxyError => new ProxyError("permission_denied", what, { hint: "run with CAP_X" });
    const hidden = (what: string): Leftover => ({
      what,
      isLive: false,
      unseen: denied(what),
      remove: () => Promise.reject(new Error("no")),
    });
    const cleared = await clear([
      finder("a", async () => [hidden("legacy"), left("table x")]),
      finder("b", async () => [hidden("legacy, too")]),
    ]);
    expect([removed, cleared]).toEqual([["table x"], { removed: new Set(["a"]), staying: new Set(["a", "b"]) }]);
    expect(log.lines.filter((line) => !line.startsWith("debug"))).toEqual([
      "warn rules of a former proxy may still be in force family=IPv4 backend=a error=[permission_denied] legacy: run with CAP_X",
      `${REPORTED_REMOVED} family=IPv4 what=table x`,
    ]);
  });

  test("who can't look where nothing would be removed says so in the debug log alone", async () => {
    await clear([finder("a", () => refuses("tool_missing"))], "because");
    expect(log.lines.map((line) => line.split(" ")[0])).toEqual(["debug"]);
  });

  test("a defect is not taken for the host's doing", async () => {
    await expect(clear([finder("a", () => Promise.reject(new TypeError("oops")))])).rejects.toThrow("oops");
  });

  test("nothing is removed after the end", async () => {
    await clear([finder("a", async () => [left("table x")])], undefined, AbortSignal.abort());
    expect(removed).toEqual([]);
  });
});

describe("a proxy that takes another's place", () => {
  let proxy: ToyProxy;
  let events: string[];
  let former: BackendModule;
  const wasRemoved = (): readonly string[] => proxy.world.log.lines.filter((line) => line.startsWith(REPORTED_REMOVED));

  beforeEach(() => {
    proxy = new ToyProxy();
    events = [];
    const inner = toyModule(new ToyKernel());
    const looking = withBackends(inner, (_, family) => ({
      leftovers: async (isInUse) => {
        events.push(`${family} looked for, in use: ${isInUse}, ours in force: ${proxy.kernel.objects.IPv4.has(SERVICE)}`);
        return [{ what: `former ${family}`, remove: async () => void events.push(`${family} removed`) }];
      },
    }));
    former = {
      ...looking,
      name: "former",
      open: async (...args) => ({ ...(await looking.open(...args)), close: async () => void events.push("closed") }),
    };
  });
  afterEach(() => proxy.end());

  const others = (): Promise<readonly BackendModule[]> => Promise.resolve([former]);

  test("removes its rules once its own are in force for the family, and not before", async () => {
    proxy.kernel.failures.push(...Array.from({ length: 99 }, () => new ProxyError("tool_failed", "not yet")));
    void proxy.start({ leftovers: { others, isKept: false } });
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    await flushPromises();
    expect(proxy.kernel.applies).toBeGreaterThan(0);
    expect(events).toEqual([]);
    proxy.kernel.failures.length = 0;
    await proxy.world.clock.advance(5_000);
    expect(events).toEqual(["IPv4 looked for, in use: false, ours in force: true", "IPv4 removed", "closed"]);
    proxy.kernel.emit({ kind: "drift", what: "somebody" });
    await flushPromises();
    expect(wasRemoved()).toHaveLength(1);
  });

  test("mends its own rules while it still looks for the other's", async () => {
    const looked = Promise.withResolvers<readonly Leftover[]>();
    const inner = toyModule(proxy.kernel);
    const own = withBackends(inner, () => ({ leftovers: () => looked.promise }));
    void proxy.start({ leftovers: { others, isKept: false } }, own);
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    await flushPromises();
    proxy.kernel.objects.IPv4.delete(SERVICE);
    proxy.kernel.emit({ kind: "drift", what: "somebody" });
    await proxy.world.clock.advance(1_000);
    const meanwhile = [[...events], proxy.kernel.objects.IPv4.has(SERVICE)];
    looked.resolve([]);
    await flushPromises();
    expect(meanwhile).toEqual([[], true]);
    expect(events).toContain("IPv4 removed");
  });

  test("removes them when all of its own are in force, and not when some are deferred", async () => {
    proxy.kernel.stepsPerTurn = 1;
    void proxy.start({ leftovers: { others, isKept: false } });
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    await flushPromises();
    expect([proxy.kernel.applies, events]).toEqual([1, []]);
    await proxy.world.clock.advance(10);
    expect(events).toEqual(["IPv4 looked for, in use: false, ours in force: true", "IPv4 removed", "closed"]);
  });

  test("--once does so before it ends", async () => {
    proxy.pushBoth();
    await proxy.start({ leftovers: { others, isKept: false }, once: true });
    expect(events.toSorted()).toEqual([
      "IPv4 looked for, in use: false, ours in force: true",
      "IPv4 removed",
      "IPv6 looked for, in use: false, ours in force: true",
      "IPv6 removed",
      "closed",
      "closed",
    ]);
  });

  test.each([
    ["somebody wants it so", { leftovers: { others, isKept: true } }, {}],
    ["it is a dry run", { leftovers: { others, isKept: false }, dryRun: () => undefined }, {}],
    ["its own end with the process", { leftovers: { others, isKept: false } }, { residence: "process" as const }],
  ])("tells of its rules and leaves them where %s", async (_name, options, overrides) => {
    await proxy.started(options, toyModule(proxy.kernel, overrides));
    await flushPromises();
    expect(events.filter((event) => event.includes("removed"))).toEqual([]);
    expect(proxy.world.log.lines.filter((line) => line.startsWith(REPORTED_KEPT))).toHaveLength(2);
  });

  test("asks its own backend for what it doesn't adopt", async () => {
    const inner = toyModule(proxy.kernel);
    const own = withBackends(inner, () => ({
      leftovers: async (isInUse) => (isInUse ? [{ what: "a relative's", remove: async () => void events.push("removed") }] : []),
    }));
    await proxy.started({ leftovers: { others: () => Promise.resolve([]), isKept: false } }, own);
    expect(events).toEqual(["removed", "removed"]);
  });
});

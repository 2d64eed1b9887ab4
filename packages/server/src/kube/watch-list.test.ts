import { createApiServer, type ApiServer, type WatchListFault } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import { asked, KubeRun, service, watching } from "../test-support/kube.ts";
import { eventually, ManualClock, untilTestEnds } from "../test-support/world.ts";
import { DEFAULT_TIMINGS } from "./reflector-timings.ts";

/** As in production, but for the hour that lists are used, which is a minute and 40 s. */
const TIMINGS = { ...DEFAULT_TIMINGS, connectTimeoutMs: 10_000, answerTimeoutMs: 60_000, watchListRestMs: 100_000 };

let api: ApiServer;
let run: KubeRun;
let clock: ManualClock;

beforeEach(async () => {
  run = await KubeRun.create();
  clock = new ManualClock();
  api = untilTestEnds(await createApiServer({ bookmarkMs: 3_600_000 }));
  for (const object of [service("cart"), service("till")]) api.apply(object);
});

/** What was asked about Services, in order. */
function questions(): readonly string[] {
  return asked(api, "services").map((query) => (query.has("sendInitialEvents") ? "watch-list" : query.has("watch") ? "watch" : "list"));
}

function startWith(fault: WatchListFault, more: { times?: number; retryAfterSeconds?: number } = {}): Promise<void> {
  api.misbehave({ watchList: fault, ...more });
  return run.start(api, TIMINGS, { clock });
}

/** How many kinds list in the place of a watch-list. */
function fallen(): number {
  return run.log.lines.filter(({ line }) => line.endsWith("watch-list does not work, listing instead")).length;
}

/** Let time pass in steps, as what is woken asks over the network, until something is so. */
async function pass(stepMs: number, isTrue: () => boolean): Promise<void> {
  while (!isTrue()) {
    clock.advance(stepMs);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("a watch-list that does not end is replaced by a list and a watch, within 30 s:", () => {
  const silent: readonly WatchListFault[] = ["silent", "unmarked"];
  it.each(silent)("%s", async (fault) => {
    await startWith(fault);
    await eventually(() => run.sink.objects.size === 2 && (fault === "silent" || api.watchCount === 4));
    clock.advance(29_999);
    api.bookmark();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(fallen()).toBe(0);
    clock.advance(1);
    await eventually(() => fallen() === 4);
    // Spread over five seconds; random 0.5.
    expect(questions()).toEqual(["watch-list"]);
    clock.advance(2_500);
    await run.sink.until((seen) => seen.isSynced);
    await watching(api);
    expect(questions()).toEqual(["watch-list", "list", "watch"]);
    expect(run.log.of("warn")).toEqual([]);
  });

  const answers: readonly WatchListFault[] = ["ends", "cut", "list", "page", 302, 403, 404, 405, 410, 415, 500, 501, 502, 503];
  it.each(answers)("%s, without a wait for silence", async (fault) => {
    await startWith(fault);
    await eventually(() => fallen() === 4);
    clock.advance(2_500);
    await run.sink.until((seen) => seen.isSynced);
    await watching(api);
    expect(questions()).toEqual(["watch-list", "list", "watch"]);
    api.apply(service("shelf"));
    await run.sink.until(({ objects }) => objects.has("Service shop/shelf"));
  });

  const unsupported: readonly WatchListFault[] = [400, 422];
  it.each(unsupported)("%s, at once: such servers have no watch-list", async (fault) => {
    await startWith(fault);
    await run.sink.until((seen) => seen.isSynced);
    expect(questions().slice(0, 2)).toEqual(["watch-list", "list"]);
    expect(run.log.of("info").filter((line) => line.includes("watch-list"))).toEqual([]);
  });

  it("a request that gets no answer at all", async () => {
    api.misbehave({ hang: true, times: 4 });
    await run.start(api, TIMINGS, { clock });
    await eventually(() => api.requests.length === 4);
    clock.advance(30_000);
    await eventually(() => fallen() === 4);
    clock.advance(2_500);
    await run.sink.until((seen) => seen.isSynced);
    expect(questions().slice(0, 2)).toEqual(["watch-list", "list"]);
  });

  it("one that sends events for ever: only first objects count, not changes and bookmarks", async () => {
    await startWith("unmarked");
    await eventually(() => api.watchCount === 4);
    for (let round = 0; round < 6; round++) {
      clock.advance(6_000);
      api.apply(service("cart", { clusterIP: `10.96.0.${20 + round}` }));
      api.apply(service(`new-${round}`));
      await eventually(() => fallen() > 0 || run.sink.objects.has(`Service shop/new-${round}`));
    }
    await eventually(() => fallen() === 4);
    expect(clock.nowMs()).toBeLessThanOrEqual(36_000);
  });
});

it("is bounded in silence and not in time: one that goes on sending its objects is waited for", async () => {
  await startWith("unmarked");
  await eventually(() => api.watchCount === 4);
  for (let round = 0; round < 20; round++) {
    clock.advance(20_000);
    api.apply(service(`new-${round}`));
    await run.sink.until(({ objects }) => objects.has(`Service shop/new-${round}`));
  }
  // The other kinds sent nothing.
  expect(run.log.lines.filter(({ line }) => line.startsWith("info Service: watch-list"))).toEqual([]);
  expect(questions()).toEqual(["watch-list"]);
});

describe("a server that asks to wait gets no list:", () => {
  const busy: readonly (readonly [status: number, retryAfterSeconds: number | undefined, waitMs: number])[] = [
    [429, 7, 8_750],
    [429, undefined, 800],
    [503, 20, 25_000],
  ];
  it.each(busy)("%s with Retry-After %s", async (status, retryAfterSeconds, waitMs) => {
    await startWith(status, { times: 4, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) });
    await eventually(() => run.log.failing().size === 4);
    clock.advance(waitMs - 1);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(questions()).toEqual(["watch-list"]);
    clock.advance(1);
    await run.sink.until((seen) => seen.isSynced);
    expect(questions()).toEqual(["watch-list", "watch-list"]);
  });
});

it("credentials that are not accepted, and a server that is away, lead to no list", async () => {
  api.requireToken("good");
  const bad = { kubeconfig: () => api.kubeconfig({ token: "bad" }) };
  await run.start(bad, TIMINGS, { clock });
  await pass(500, () => questions().length > 4);
  await api.pause();
  await pass(500, () => run.log.lines.filter(({ line }) => line.includes("still failing")).length > 20);
  expect(new Set(questions())).toEqual(new Set(["watch-list"]));
});

it("watch-list is tried again later", async () => {
  await startWith(500, { times: 4 });
  await eventually(() => fallen() === 4);
  clock.advance(2_500);
  await watching(api);
  const forget = async (): Promise<readonly string[]> => {
    const before = questions().length;
    await api.pause();
    api.apply(service("cart", { clusterIP: `10.96.0.${100 + before}` }));
    api.compact();
    await api.resume();
    await pass(500, () => questions().length >= before + 2 && api.watchCount === 4);
    return questions().slice(before);
  };
  expect((await forget()).slice(0, 2)).toEqual(["watch", "list"]);
  await pass(500, () => clock.nowMs() > 110_000 && api.watchCount === 4);
  expect((await forget()).slice(0, 2)).toEqual(["watch", "watch-list"]);
});

import { describe, expect, it } from "vitest";
import { ProxyError } from "../../model/errors.ts";
import { FlowForgetter } from "./flow-forgetter.ts";
import { RecordingLog } from "../../testing/recording-log.ts";
import { RecordingObserver } from "../../test-support/records.ts";
import { flushPromises, TestClock } from "../../testing/clock.ts";
import type { FlowFilter } from "../../contract/world.ts";

const never = new AbortController().signal;

function flow(address: string, keep: readonly string[], only?: readonly string[]): FlowFilter {
  return { protocol: "UDP", address, port: 53, keep, ...(only === undefined ? {} : { only }) };
}

/** A forgetter whose backend takes each batch only when told how it ends, or stopped. */
function createBench(): {
  forgetter: FlowForgetter;
  batches: (readonly FlowFilter[])[];
  end: (error?: ProxyError) => Promise<void>;
  log: RecordingLog;
  observer: RecordingObserver;
} {
  const batches: (readonly FlowFilter[])[] = [];
  let finish: ((error?: ProxyError) => void) | undefined;
  const [log, observer] = [new RecordingLog(), new RecordingObserver()];
  const forgetFlows = (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> => {
    batches.push(flows);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    signal.addEventListener("abort", () => reject(signal.reason as ProxyError));
    finish = (error) => (error === undefined ? resolve(flows.length) : reject(error));
    return promise;
  };
  const forgetter = new FlowForgetter({ backend: { forgetFlows }, family: "IPv4", clock: new TestClock(), log, observer });
  const end = async (error?: ProxyError): Promise<void> => {
    finish?.(error);
    await flushPromises();
  };
  return { forgetter, batches, end, log, observer };
}

describe("R-42 forgetting beside the syncs", () => {
  it("one batch at a time; what comes meanwhile is the next", async () => {
    const { forgetter, batches, end, observer } = createBench();
    forgetter.forget([flow("a", ["1"])]);
    forgetter.forget([flow("b", ["1"])]);
    forgetter.forget([flow("c", ["1"])]);
    expect(batches).toEqual([[flow("a", ["1"])]]);
    await end();
    expect(batches[1]).toEqual([flow("b", ["1"]), flow("c", ["1"])]);
    await end();
    await forgetter.idle(never);
    expect([batches.length, observer.forgotten]).toEqual([2, 3]);
  });

  it("a later word on a destination takes the place of earlier ones: an endpoint that is back keeps its flows", async () => {
    const { forgetter, batches, end } = createBench();
    forgetter.forget([flow("x", [])]);
    forgetter.forget([flow("a", []), flow("a", [], ["1"])]);
    forgetter.forget([flow("a", ["1"])]);
    await end();
    expect(batches[1]).toEqual([flow("a", ["1"])]);
  });

  it("but a word on some of its answerers only adds to them", async () => {
    const { forgetter, batches, end } = createBench();
    forgetter.forget([flow("x", [])]);
    forgetter.forget([flow("a", [], ["1"])]);
    forgetter.forget([flow("a", ["2"])]);
    forgetter.forget([flow("a", [], ["2"])]);
    forgetter.forget([flow("a", [], ["3"])]);
    await end();
    expect(batches[1]).toEqual([flow("a", ["2"]), flow("a", [], ["2", "3"])]);
  });

  it("what failed is tried again with the next, as far as nothing newer was said", async () => {
    const { forgetter, batches, end, log } = createBench();
    forgetter.forget([flow("a", ["1"]), flow("b", ["1"])]);
    forgetter.forget([flow("b", ["2"])]);
    await end(new ProxyError("tool_failed", "netlink"));
    expect([batches.length, log.lines.map(({ level }) => level)]).toEqual([1, ["warn"]]);
    forgetter.forget([]);
    expect(batches[1]).toEqual([flow("a", ["1"]), flow("b", ["2"])]);
    await end();
    forgetter.forget([]);
    expect(batches).toHaveLength(2);
  });

  it("a batch is stopped by a change where it looks, and left alone by any other", async () => {
    const { forgetter, batches, log } = createBench();
    forgetter.forget([flow("a", []), flow("b", ["1"])]);
    forgetter.postpone(["c 53", "a 54"]);
    await flushPromises();
    expect(batches).toHaveLength(1);
    forgetter.postpone(["c 53", "a 53"]);
    await flushPromises();
    expect(batches.slice(1)).toEqual([[flow("b", ["1"])]]);
    expect(log.lines).toEqual([]);
  });

  it("what is withheld waits for a sync that succeeds, and is judged by what that says", async () => {
    const { forgetter, batches, end } = createBench();
    forgetter.forget([flow("a", []), flow("b", []), flow("c", [], ["1"])]);
    const changing = ["a 53", "b 53", "c 53"];
    forgetter.postpone(changing);
    await flushPromises();
    // The sync failed, and is tried again.
    forgetter.postpone(changing);
    await flushPromises();
    expect(batches).toHaveLength(1);
    forgetter.forget([flow("a", ["2"])]);
    expect(batches.slice(1)).toEqual([[flow("a", ["2"]), flow("b", []), flow("c", [], ["1"])]]);
    await end();
    await forgetter.idle(never);
    expect(batches).toHaveLength(2);
  });

  it("a batch that is slow to stop brings nothing back that was said of old", async () => {
    const batches: (readonly FlowFilter[])[] = [];
    const ends: (() => void)[] = [];
    const backend = {
      forgetFlows: (flows: readonly FlowFilter[]): Promise<number> => {
        batches.push(flows);
        return new Promise((resolve) => ends.push(() => resolve(0)));
      },
    };
    const { log, observer } = createBench();
    const forgetter = new FlowForgetter({ backend, family: "IPv4", clock: new TestClock(), log, observer });
    forgetter.forget([flow("a", [])]);
    forgetter.postpone(["a 53"]);
    forgetter.forget([flow("a", ["1"])]);
    forgetter.postpone(["a 53"]);
    forgetter.postpone(["a 53"]);
    forgetter.forget([]);
    ends[0]?.();
    await flushPromises();
    expect(batches.slice(1)).toEqual([[flow("a", ["1"])]]);
  });

  it("what waits is withheld, too, and those who change all the time hold nobody else up", async () => {
    const { forgetter, batches, end, observer } = createBench();
    forgetter.forget([flow("x", [])]);
    forgetter.forget([flow("a", []), flow("b", [])]);
    forgetter.postpone(["a 53"]);
    await end();
    expect(batches.slice(1)).toEqual([[flow("b", [])]]);
    for (const keep of ["1", "2", "3"]) {
      forgetter.forget([flow("a", [keep])]);
      forgetter.postpone(["a 53"]);
      await flushPromises();
    }
    expect(batches).toHaveLength(2);
    await end();
    expect(observer.forgotten).toBe(2);
  });

  it("FlowForgetter stops when asked", async () => {
    const { forgetter, batches, log } = createBench();
    const ending = new AbortController();
    forgetter.forget([flow("a", [])]);
    forgetter.forget([flow("b", [])]);
    const idle = forgetter.idle(ending.signal);
    ending.abort(new ProxyError("canceled", "the end"));
    await idle;
    forgetter.forget([flow("c", [])]);
    await forgetter.idle(ending.signal);
    expect([batches.length, log.lines]).toEqual([1, []]);
  });

  it("a backend that can't forget is never asked", async () => {
    const { log, observer } = createBench();
    const forgetter = new FlowForgetter({ backend: {}, family: "IPv4", clock: new TestClock(), log, observer });
    forgetter.forget([flow("a", [])]);
    await forgetter.idle(never);
    expect([log.lines, observer.forgotten]).toEqual([[], 0]);
  });
});

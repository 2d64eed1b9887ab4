import { describe, expect, it } from "vitest";
import { ProxyError } from "./errors.ts";
import { FlowForgetter } from "./flow-forgetter.ts";
import { RecordingLog, RecordingObserver } from "./testing/records.ts";
import { settle, TestClock } from "./testing/clock.ts";
import type { FlowFilter } from "./world.ts";

function flow(address: string, keep: readonly string[], only?: readonly string[]): FlowFilter {
  return { protocol: "UDP", address, port: 53, keep, ...(only === undefined ? {} : { only }) };
}

/** A forgetter whose backend takes each batch only when told how it ends. */
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
  const forgetFlows = (flows: readonly FlowFilter[]): Promise<number> => {
    batches.push(flows);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    finish = (error) => (error === undefined ? resolve(flows.length) : reject(error));
    return promise;
  };
  const forgetter = new FlowForgetter({ backend: { forgetFlows }, family: "IPv4", clock: new TestClock(), log, observer });
  const end = async (error?: ProxyError): Promise<void> => {
    finish?.(error);
    await settle();
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
    await forgetter.idle();
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

  it("a backend that can't forget is never asked", async () => {
    const { log, observer } = createBench();
    const forgetter = new FlowForgetter({ backend: {}, family: "IPv4", clock: new TestClock(), log, observer });
    forgetter.forget([flow("a", [])]);
    await forgetter.idle();
    expect([log.lines, observer.forgotten]).toEqual([[], 0]);
  });
});

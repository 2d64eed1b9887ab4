import { describe, expect, it } from "vitest";
import { FaultSwitches } from "./fault-switches.ts";

describe("FaultSwitches", () => {
  it("let everything succeed as long as nobody has set anything", () => {
    expect(new FaultSwitches().next("add 10.96.0.1")).toBeUndefined();
  });

  it("have one change fail, after those that are to succeed", () => {
    const faults = new FaultSwitches();
    faults.setFault({ when: "during", afterChanges: 2 });
    expect(["a", "b", "c", "d"].map((change) => faults.next(change))).toEqual([undefined, undefined, "during", undefined]);
  });

  it("forget a fault that is taken back", () => {
    const faults = new FaultSwitches();
    faults.setFault({ when: "after", afterChanges: 0 });
    faults.setFault(undefined);
    expect(faults.next("a")).toBeUndefined();
  });

  it("refuse every change that names an address, in a text or among others, and count none of them", () => {
    const faults = new FaultSwitches();
    faults.setFault({ when: "after", afterChanges: 1 });
    faults.refuse(["10.96.0.1"]);
    expect(faults.next("add 10.96.0.1 80")).toBe("before");
    expect(faults.next(["10.96.0.2", "10.96.0.1"])).toBe("before");
    expect(faults.isRefused(["10.96.0.10"])).toBe(false);
    faults.refuse([]);
    expect(["add 10.96.0.1 80", "b"].map((change) => faults.next(change))).toEqual([undefined, "after"]);
  });
});

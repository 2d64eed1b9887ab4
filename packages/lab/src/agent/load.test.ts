import { describe, expect, it } from "vitest";
import { answerFor, outcomeOf } from "./answer.ts";
import { createCounter } from "./load.ts";

describe("createCounter", () => {
  it("sums up who answered, whom they saw, and what failed", () => {
    const counter = createCounter();
    counter.add({ outcome: "ok", latencyMs: 1, server: "a", client: "10.0.0.1" });
    counter.add({ outcome: "ok", latencyMs: 3, server: "b", client: "10.0.0.1" });
    counter.add({ outcome: "reset", latencyMs: 900 });
    expect(counter.tally()).toEqual({
      attempts: 3,
      ok: 2,
      failed: { reset: 1 },
      servers: { a: 1, b: 1 },
      clients: { "10.0.0.1": 2 },
      p50Ms: 3,
      p99Ms: 3,
    });
  });

  it("gives a tally that later attempts don't touch", () => {
    const counter = createCounter();
    const before = counter.tally();
    counter.add({ outcome: "timeout", latencyMs: 1 });
    expect(before).toMatchObject({ attempts: 0, failed: {}, p50Ms: 0 });
  });
});

describe("answers and outcomes", () => {
  it("give a v4 client of a dual-stack socket its name back", () => {
    expect(answerFor("s", "::ffff:10.0.0.1", 5)).toEqual({ server: "s", client: "10.0.0.1", clientPort: 5, family: "IPv4" });
    expect(answerFor("s", "fd00::1", 5).family).toBe("IPv6");
  });

  it.each([
    ["ECONNREFUSED", "refused"],
    ["ECONNRESET", "reset"],
    ["EHOSTUNREACH", "unreachable"],
    ["EADDRINUSE", undefined],
  ])("%s means %s", (code, outcome) => {
    expect(outcomeOf(Object.assign(new Error(), { code }))).toBe(outcome);
  });
});

import { describe, expect, it } from "vitest";
import type { RouteQuestion } from "./route.ts";
import { routingRulesIn } from "./routing-rules.ts";

const LISTED = JSON.stringify([
  { priority: 0, src: "all", table: "local" },
  { priority: 47, not: null, src: "10.0.0.0", srclen: 8, table: "7" },
  { priority: 48, src: "all", dst: "10.2.0.0", dstlen: 16, iif: "lo", action: "blackhole" },
  { priority: 49, src: "all", fwmark: "0x4000", fwmask: "0x4000", table: "100" },
  { priority: 50, src: "10.1.0.7", action: "prohibit" },
  { priority: 51, src: "10.1.0.7", uid_start: 0, uid_end: 9, action: "prohibit" },
  { priority: 32_766, src: "all", table: "main" },
]);

describe("routing rules", () => {
  const rules = routingRulesIn(LISTED);
  const fitting = (question: RouteQuestion): readonly number[] =>
    rules.filter(({ fits }) => fits(question)).map(({ priority }) => priority);

  it("are written as ip writes them", () => {
    expect(rules.map(({ text }) => text).slice(1, 5)).toEqual([
      "not from 10.0.0.0/8 lookup 7",
      "from all to 10.2.0.0/16 iif lo blackhole",
      "from all fwmark 0x4000/0x4000 lookup 100",
      "from 10.1.0.7 prohibit",
    ]);
  });

  it.each<readonly [string, RouteQuestion, readonly number[]]>([
    ["a pod's packet", { to: "10.1.2.5", from: "10.1.0.7", by: "veth1" }, [0, 50, 32_766]],
    ["one with a mark", { to: "10.1.2.5", from: "10.1.0.8", by: "veth1", mark: 0x4001 }, [0, 49, 32_766]],
    ["the host's own", { to: "10.2.0.1", from: "10.1.0.9" }, [0, 48, 32_766]],
    ["a client's from outside of a range", { to: "10.2.0.1", from: "192.0.2.1", by: "eth0" }, [0, 47, 32_766]],
  ])("fit %s, and nobody where something in them is not understood", (_name, question, expected) => {
    expect(fitting(question)).toEqual(expected);
  });
});

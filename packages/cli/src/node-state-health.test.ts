import { describe, expect, test } from "vitest";
import { judgeNodeState, type NodeStateCondition, type NodeStateProbe } from "./node-state-health.ts";

const FINE: NodeStateCondition = { isComplete: true, listenProblem: "", sources: new Map([["Service", ""]]) };

describe("a node-state server", () => {
  const cases: readonly [name: string, condition: NodeStateCondition, statuses: Readonly<Record<NodeStateProbe, number>>][] = [
    ["that works", FINE, { livez: 200, healthz: 200, readyz: 200 }],
    ["whose source has not said all", { ...FINE, isComplete: false }, { livez: 200, healthz: 200, readyz: 503 }],
    ["that nobody can connect to", { ...FINE, listenProblem: "gone" }, { livez: 200, healthz: 503, readyz: 503 }],
    ["whose source is away", { ...FINE, sources: new Map([["Service", "[feed_lost] x"]]) }, { livez: 200, healthz: 200, readyz: 200 }],
  ];
  test.each(cases)("%s", (_name, condition, statuses) => {
    for (const [probe, status] of Object.entries(statuses)) {
      const { reply, reason } = judgeNodeState(probe as NodeStateProbe, condition, 0);
      expect([probe, reply.status, reason === ""]).toEqual([probe, status, status === 200]);
    }
  });

  test("says why, and what becomes of its source, without details of it", () => {
    const condition = {
      isComplete: false,
      listenProblem: "gone",
      sources: new Map([
        ["Service", "[feed_lost] x"],
        ["Node", ""],
      ]),
    };
    const { reply, reason } = judgeNodeState("readyz", condition, 0);
    expect(reason).toBe("new clients can't connect: gone; the source has not said yet what there is");
    expect(JSON.parse(reply.body)).toEqual({
      currentTime: "1970-01-01T00:00:00.000Z",
      ok: false,
      reason,
      complete: false,
      source: { Service: "away", Node: "followed" },
    });
  });
});

import { describe, expect, it } from "vitest";
import type { Packet, Verdict } from "../oracle/packet.ts";
import type { Trace } from "../runner/fake-host.ts";
import { judgePacket } from "./judge.ts";
import type { Question } from "./judge.ts";
import { createRandom } from "@turnout/core/testing";

const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "203.0.113.1", destination: "10.96.0.1", port: 80, link: "eth0" };
const TWO: Verdict = {
  is: "forward",
  answers: [
    { endpoint: "10.1.1.1:8080", masquerade: true },
    { endpoint: "10.1.2.1:8080", masquerade: true },
  ],
  because: ["R-22"],
};
const to = (endpoint: string, masquerade: boolean = true): Trace => ({ is: "forward", endpoint, masquerade, path: ["the way"] });

/** Judge a host that sends packets to these one after another. */
function judge(traces: readonly Trace[], question: Partial<Question> = {}): { readonly said: readonly string[]; readonly draws: number } {
  let draws = 0;
  const trace = (): Trace => traces[draws++ % traces.length] as Trace;
  const complaints = judgePacket({ trace }, { packet: PACKET, verdict: TWO, remembered: undefined, ...question }, createRandom(1));
  return { said: complaints.map(({ kind, expected, got }) => `${kind}: ${expected} / ${got}`), draws };
}

describe("a packet is judged", () => {
  it("right when all that should answer do, after enough draws", () => {
    expect(judge([to("10.1.1.1:8080"), to("10.1.2.1:8080")])).toEqual({ said: [], draws: 24 });
  });

  it("wrong when one never does, after many draws", () => {
    expect(judge([to("10.1.1.1:8080")])).toEqual({
      said: ["verdict: pod-1-1 pod-2-1 saw node1 / never pod-2-1 saw node1"],
      draws: 400,
    });
  });

  it("by the client's address alone: right when one always does, wrong when two do, or another", () => {
    expect(judge([to("10.1.1.1:8080")], { isFixed: true }).said).toEqual([]);
    const two = "affinity: always the same one / pod-1-1 pod-2-1 saw node1";
    expect(judge([to("10.1.1.1:8080"), to("10.1.2.1:8080")], { isFixed: true }).said).toEqual([two]);
    expect(judge([to("10.1.1.2:8080")], { isFixed: true }).said).toEqual(["verdict: pod-1-1 pod-2-1 saw node1 / pod-1-2 saw node1"]);
  });

  it("wrong when somebody else does, or sees somebody else", () => {
    const expected = "verdict: pod-1-1 pod-2-1 saw node1 /";
    expect(judge([to("10.1.1.1:8080"), to("10.1.2.1:8080"), to("10.1.1.2:8080")]).said).toEqual([`${expected} pod-1-2 saw node1`]);
    expect(judge([to("10.1.1.1:8080"), to("10.1.2.1:8080", false)]).said).toEqual([`${expected} pod-2-1 saw client1`]);
    expect(judge([to("10.1.1.1:8080"), { is: "drop", path: [] }, to("10.1.2.1:8080")]).said).toEqual([`${expected} dropped`]);
  });

  it("by a few draws when it is refused", () => {
    const verdict: Verdict = { is: "reject", because: ["R-23"] };
    expect(judge([{ is: "reject", path: [] }], { verdict })).toEqual({ said: [], draws: 3 });
    expect(judge([{ is: "drop", path: [] }], { verdict })).toEqual({ said: ["verdict: refused / dropped"], draws: 3 });
    expect(judge([to("10.1.1.1:8080")], { verdict }).said).toEqual(["verdict: refused / pod-1-1 saw node1"]);
  });

  it("by where its client was sent before", () => {
    const remembered = { is: "kept", endpoint: "10.1.1.1:8080" } as const;
    expect(judge([to("10.1.1.1:8080")], { remembered }).said).toEqual([]);
    expect(judge([to("10.1.1.1:8080"), to("10.1.2.1:8080")], { remembered }).said).toEqual([
      "affinity: pod-1-1 saw node1 / pod-2-1 saw node1",
    ]);
    expect(judge([to("10.1.2.1:8080")], { remembered: { ...remembered, is: "doubtful" } }).said).toEqual([]);
    expect(judge([to("10.1.1.1:8080")], { goes: "free" }).said).toEqual(["affinity: pod-1-1 pod-2-1 saw node1 / never pod-2-1 saw node1"]);
  });

  it("with the kit itself wrong where its words and the oracle differ", () => {
    const traces = [to("10.1.1.1:8080"), to("10.1.2.1:8080")];
    expect(judge(traces, { sees: "pod-2-1 pod-1-1 saw node1" }).said).toEqual([]);
    expect(judge(traces, { sees: "refused" }).said).toEqual([
      "contract: words of the scenario: refused / the oracle: pod-1-1 pod-2-1 saw node1",
    ]);
    const sees = "pod-1-1 pod-2-1 saw node1";
    expect(judge(traces, { sees, goes: "same", likeEndpoint: "10.1.1.1:8080" }).said).toEqual([
      "contract: words of the scenario: like the kept one, to 10.1.1.1:8080 / the oracle: anywhere",
    ]);
    const remembered = { is: "kept", endpoint: "10.1.1.1:8080" } as const;
    expect(judge(traces.slice(0, 1), { sees, goes: "free", remembered }).said).toEqual([
      "contract: words of the scenario: anywhere / the oracle: kept 10.1.1.1:8080",
    ]);
  });

  it("as it can be: what comes in and stays on the host keeps its source", () => {
    const verdict: Verdict = { is: "forward", answers: [{ endpoint: "172.18.0.1:8080", masquerade: true }], because: [] };
    expect(judge([to("172.18.0.1:8080", false)], { verdict, sees: "node1 saw client1" }).said).toEqual([]);
    const own = { ...PACKET, source: "10.1.1.1", link: "" };
    expect(judge([to("172.18.0.1:8080", false)], { verdict, packet: own }).said).toEqual(["verdict: node1 saw node1 / node1 saw pod-1-1"]);
  });

  describe("R-68 by the share of each endpoint, where that is asked", () => {
    const THREE: Verdict = {
      is: "forward",
      answers: ["10.1.1.1:8080", "10.1.1.2:8080", "10.1.2.1:8080"].map((endpoint) => ({ endpoint, masquerade: true })),
      because: ["R-22"],
    };
    const judgeShares = (weights: readonly number[], seed: number): readonly string[] => {
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const trace = (_: Packet, random: () => number): Trace => {
        let left = random() * total;
        const index = weights.findIndex((weight) => (left -= weight) < 0);
        return to((THREE.is === "forward" ? THREE.answers[index]?.endpoint : undefined) ?? "");
      };
      const question = { packet: PACKET, verdict: THREE, remembered: undefined, isEven: true };
      return judgePacket({ trace }, question, createRandom(seed)).map(({ expected, rules }) => `${expected}: ${rules.join()}`);
    };

    it("right when it is even, whatever the seed", () => {
      for (let seed = 1; seed <= 200; seed++) expect(judgeShares([1, 1, 1], seed)).toEqual([]);
    });

    it.each([
      ["one gets twice as much", [2, 1, 1]],
      ["one gets half as much", [1, 1, 0.5]],
    ])("wrong when %s", (_name, weights) => {
      for (let seed = 1; seed <= 50; seed++)
        expect(judgeShares(weights, seed)).toEqual(["an even share for each of pod-1-1 pod-1-2 pod-2-1 saw node1: R-68"]);
    });
  });

  it.each([
    ["another server", to("10.1.1.2:8080"), ["R-22", "R-19"]],
    ["another source", to("10.1.2.1:8080", false), ["R-24"]],
    ["another fate", { is: "drop", path: [] }, ["R-22", "R-19"]],
  ])("and %s offends the rules that say so, and no others", (_name, wrong, rules) => {
    const verdict: Verdict = { ...TWO, because: ["R-22", "R-24", "R-19"] };
    const traces = [to("10.1.1.1:8080"), to("10.1.2.1:8080"), wrong];
    let draws = 0;
    const trace = (): Trace => traces[draws++ % traces.length] as Trace;
    const complaints = judgePacket({ trace }, { packet: PACKET, verdict, remembered: undefined }, createRandom(1));
    expect(complaints.map((complaint) => complaint.rules)).toEqual([rules]);
  });
});

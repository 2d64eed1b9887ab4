import { describe, expect, it } from "vitest";
import type { PortEndpoints } from "./endpoints.ts";
import { poolsFor } from "./topology.ts";
import type { PoolQuestion } from "./topology.ts";

interface Short {
  readonly ip?: string;
  /** ready, serving, terminating: "RS-", "-ST", "--T", … */
  readonly is?: string;
  readonly here?: boolean;
  readonly zones?: readonly string[];
  readonly nodes?: readonly string[];
}

function portOf(shorts: readonly Short[]): PortEndpoints {
  const all = shorts.map(({ ip = "10.1.1.1", is = "RS-", here = false, zones = [], nodes = [] }) => {
    const [ready, serving, terminating] = [is[0] === "R", is[1] === "S", is[2] === "T"];
    const endpoint = { ip, nodeName: here ? "node1" : "node2", ready, serving, terminating };
    return {
      endpoint: { ...endpoint, port: 80, isLocal: here },
      entry: { ...endpoint, zoneHints: zones, nodeHints: nodes, podName: undefined },
    };
  });
  const hasUsable = all.some(({ endpoint }) => endpoint.ready || (endpoint.serving && endpoint.terminating));
  return {
    endpoints: all.map(({ endpoint }) => endpoint),
    entries: all.map(({ entry }) => entry),
    rivals: [],
    port: 80,
    nodeName: "node1",
    hasUsable,
  };
}

const BOTH: PoolQuestion = { nodeName: "node1", zone: "a", usesCluster: true, usesLocal: true };

function pools(shorts: readonly Short[], question: Partial<PoolQuestion> = {}): readonly unknown[] {
  const { cluster, local, hasUsableEndpoints, topology } = poolsFor(portOf(shorts), { ...BOTH, ...question });
  return [cluster, local, hasUsableEndpoints, topology];
}

describe("R-17 which states are used: a local endpoint in each state, alone", () => {
  it.each([
    ["ready", "RS-", true],
    ["graceful shutdown", "-ST", true],
    ["terminating, no longer serving", "--T", false],
    ["not ready", "---", false],
    ["serving, not ready, not terminating", "-S-", false],
    ["ready though terminating (publishNotReadyAddresses)", "RST", true],
    ["ready, not serving, terminating", "R-T", true],
    ["ready, not serving", "R--", true],
  ])("%s", (_name, is, isUsed) => {
    const pool = isUsed ? [0] : [];
    expect(pools([{ is, here: true }])).toEqual([pool, pool, isUsed, ""]);
  });

  it("no endpoints", () => expect(pools([])).toEqual([[], [], false, ""]));
});

describe("R-18 terminating endpoints step in, for each pool on its own", () => {
  const readyHere: Short = { here: true };
  const servingTerminatingHere: Short = { here: true, is: "-ST" };
  const readyThere: Short = {};
  const servingTerminatingThere: Short = { is: "-ST" };
  it.each([
    ["ready here and there", [readyHere, readyThere], [[0, 1], [0], true]],
    ["ready beats terminating", [readyHere, servingTerminatingHere, readyThere, servingTerminatingThere], [[0, 2], [0], true]],
    ["cluster has ready ones, local falls back", [servingTerminatingHere, readyThere], [[1], [0], true]],
    ["only terminating ones", [servingTerminatingHere, servingTerminatingThere], [[0, 1], [0], true]],
    ["terminating there only", [servingTerminatingThere], [[0], [], true]],
    ["ready there only", [readyThere], [[0], [], true]],
    ["useless ones", [{ is: "---", here: true }, { is: "--T", here: true }, { is: "-S-" }], [[], [], false]],
  ])("%s", (_name, shorts, [cluster, local, hasUsableEndpoints]) =>
    expect(pools(shorts)).toEqual([cluster, local, hasUsableEndpoints, ""]),
  );

  it("the cluster pool falls back to all nodes whatever the hints", () => {
    expect(
      pools([
        { is: "-ST", zones: ["b"], nodes: ["node2"] },
        { is: "-ST", zones: ["a"] },
      ]),
    ).toEqual([[0, 1], [], true, ""]);
  });
});

describe("R-19 node hints, R-20 zone hints", () => {
  const here: Short = { here: true, nodes: ["node1"], zones: ["a"] };
  it.each([
    ["all hinted, one for this node", [here, { nodes: ["node2"] }], [[0], "PreferSameNode"]],
    ["several hints each", [{ nodes: ["node1", "node2"] }, { nodes: ["node2"] }], [[0], "PreferSameNode"]],
    ["all hinted, none for this node, no zones", [{ nodes: ["node2"] }, { nodes: ["node3"] }], [[0, 1], ""]],
    ["one without a node hint: zones decide", [here, { zones: ["a"] }, { zones: ["b"] }], [[0, 1], "PreferSameZone"]],
    [
      "none for this node: zones decide",
      [
        { nodes: ["node2"], zones: ["a"] },
        { nodes: ["node3"], zones: ["b"] },
      ],
      [[0], "PreferSameZone"],
    ],
    ["node beats zone", [here, { nodes: ["node2"], zones: ["a"] }], [[0], "PreferSameNode"]],
    ["zones, one for ours", [{ zones: ["a"] }, { zones: ["b"] }], [[0], "PreferSameZone"]],
    ["zones, several each", [{ zones: ["b", "a"] }, { zones: ["a"] }, { zones: ["c"] }], [[0, 1], "PreferSameZone"]],
    ["zones, none for ours", [{ zones: ["b"] }, { zones: ["c"] }], [[0, 1], ""]],
    ["one unhinted ready endpoint turns zones off", [{ zones: ["a"] }, {}], [[0, 1], ""]],
    [
      "an unhinted one that isn't ready does not",
      [{ zones: ["a"] }, { zones: ["b"] }, { is: "-ST" }, { is: "---" }],
      [[0], "PreferSameZone"],
    ],
    ["only a terminating one is hinted for us", [{ zones: ["b"] }, { zones: ["a"], is: "-ST" }], [[0], ""]],
    ["no hints", [{}, {}], [[0, 1], ""]],
  ])("%s", (_name, shorts, [cluster, topology]) => {
    const { cluster: pool, topology: mode } = poolsFor(portOf(shorts), BOTH);
    expect([pool, mode]).toEqual([cluster, topology]);
  });

  it("a node without a zone matches none, not even an empty hint", () => {
    expect(pools([{ zones: [""] }, { zones: ["b"] }], { zone: "" })).toEqual([[0, 1], [], true, ""]);
  });

  it("hints never touch the local pool", () => {
    expect(pools([{ here: true, zones: ["b"] }, { zones: ["a"] }])).toEqual([[1], [0], true, "PreferSameZone"]);
  });
});

describe("R-21 pools nobody asks for stay empty, and whether anything is usable is known all the same", () => {
  const shorts: readonly Short[] = [{ here: true }, {}];
  it.each([
    ["cluster only", { usesLocal: false }, [[0, 1], [], true, ""]],
    ["local only", { usesCluster: false }, [[], [0], true, ""]],
    ["neither", { usesCluster: false, usesLocal: false }, [[], [], true, ""]],
  ])("%s", (_name, question, expected) => expect(pools(shorts, question)).toEqual(expected));

  it("local only, nothing here: usable elsewhere", () => expect(pools([{}], { usesCluster: false })).toEqual([[], [], true, ""]));
});

import { Ledger } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { HOOKS } from "./hooks.ts";
import type { EbpfObject, ListObject } from "./objects.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, OPTIONS, PARTS, stateOf } from "./test-support/states.ts";

function want(ledger: Ledger<EbpfObject>, fixtures: readonly ServiceFixture[], family: IPFamily, facts = FACTS): void {
  const { rows, node } = stateOf(fixtures, family);
  const context = { node, host: facts };
  ledger.setAll(
    renderSkeleton(context, { ...PARTS, isKeeper: family === "IPv4" }),
    new Map([...rows].map(([key, row]) => [key, renderRow(row, context, OPTIONS)])),
  );
}

/** The plan that leads from one state to another. */
function planOf(
  before: readonly ServiceFixture[] | undefined,
  after: readonly ServiceFixture[],
  family: IPFamily = "IPv4",
): readonly Step[] {
  const ledger = new Ledger<EbpfObject>();
  if (before !== undefined) {
    want(ledger, before, family);
    ledger.commit(ledger.delta(0), {});
  }
  want(ledger, after, family);
  expect(ledger.defects.size).toBe(0);
  return planDelta(ledger.delta(0)).steps;
}

const plain = (local: number, remote: number, spec: ServiceFixture["spec"] = {}): ServiceFixture => ({
  name: "cart",
  number: 1,
  local,
  remote,
  spec,
});

const balanced = (loadBalancerSourceRanges: readonly string[]): ServiceFixture => ({
  ...plain(1, 1, { type: "LoadBalancer", loadBalancerSourceRanges }),
  loadBalancerIPs: ["198.51.100.6"],
});

const CHANGES: readonly [string, readonly ServiceFixture[], readonly ServiceFixture[]][] = [
  ["endpoint-added", [plain(0, 3)], [plain(0, 4)]],
  ["last-endpoint-gone", [plain(0, 1)], [plain(0, 0)]],
  ["service-deleted", [plain(1, 1)], []],
  ["affinity-switched-on", [plain(0, 2)], [plain(0, 2, { sessionAffinity: "ClientIP" })]],
  ["policy-local", [plain(1, 1)], [plain(1, 1, { internalTrafficPolicy: "Local" })]],
  ["source-ranges-changed", [balanced(["203.0.113.0/24"])], [balanced(["203.0.113.0/24", "10.1.1.0/24"])]],
  [
    "second-service-with-the-same-endpoints",
    [plain(1, 1)],
    [plain(1, 1), { ...plain(1, 1), name: "twin", spec: { externalIPs: ["198.51.100.1"] } }],
  ],
];

describe("golden plans", () => {
  it.each(["IPv4", "IPv6"] as const)("one service of each treatment from nothing, %s", async (family) => {
    await expect(explainPlan({ steps: planOf(undefined, SHOWCASE, family) })).toMatchFileSnapshot(`../test/golden/showcase.${family}.txt`);
  });

  it.each(CHANGES)("%s", async (name, before, after) => {
    await expect(explainPlan({ steps: planOf(before, after) })).toMatchFileSnapshot(`../test/golden/${name}.txt`);
  });
});

describe("planDelta", () => {
  it("deletes a list only when it has lingered", () => {
    const list: EbpfObject = { kind: "list", key: "1".repeat(16), value: ["10.1.2.3:80"] };
    const removed = planDelta({ put: [], remove: [list], lingering: [], nowMs: 0 });
    const due = planDelta({ put: [], remove: [], lingering: [{ object: list, sinceMs: 0 }], nowMs: 1000 });
    expect([explainPlan(removed), explainPlan(due)]).toEqual([`retire list ${list.key}\n`, `delete list ${list.key}\n`]);
    expect(explainPlan({ steps: [] })).toBe("# nothing to do\n");
  });

  it("removes strays first and other folders last, brings programs to their hooks when everything is written, and then says that it serves", () => {
    const stray: EbpfObject = { kind: "stray", key: "services 00", value: "00" };
    const folder: EbpfObject = { kind: "folder", key: "v0-0123456789abcdef", value: true };
    const { node } = stateOf([], "IPv4");
    const put = renderSkeleton({ node, host: FACTS }, { ...PARTS, isKeeper: true }).map((after) => ({ after }));
    const lines = explainPlan(planDelta({ put, remove: [folder, stray], lingering: [], nowMs: 0 }))
      .trim()
      .split("\n");
    expect(lines).toEqual([
      "delete stray services 00",
      "write settings host-namespace  1",
      "write pod-range 10.1.0.0/16",
      "write primary 0.0.0.0  172.18.0.1",
      "write node-address 172.18.0.1  node-ports, listeners first",
      "write filled IPv4",
      "write table inet turnout-ebpf",
      ...Object.keys(HOOKS).map((name) => `write link ${name}  ${PARTS.programs.sockets} at cgroup 7`),
      ...[2, 3].flatMap((index) => [
        `write device ${index}-ingress  ${PARTS.programs.packets}/turnout_in`,
        `write device ${index}-egress  ${PARTS.programs.packets}/turnout_out`,
      ]),
      "delete folder v0-0123456789abcdef",
      "write serving IPv4",
    ]);
  });

  it("cuts a list that another hand made longer", () => {
    const after: ListObject = { kind: "list", key: "1".repeat(16), value: ["10.1.2.3:80", "10.1.2.4:80"] };
    const longer: ListObject = { ...after, value: [...after.value, "", "10.1.2.9:80"] };
    const [step] = planDelta({ put: [{ before: longer, after }], remove: [], lingering: [], nowMs: 0 }).steps;
    expect(step).toEqual({ verb: "write", object: after, surplus: { ...after, value: ["", "", "", "10.1.2.9:80"] } });
    const shorter: ListObject = { ...after, value: ["10.1.2.3:80"] };
    expect(planDelta({ put: [{ before: shorter, after }], remove: [], lingering: [], nowMs: 0 }).steps).toEqual([
      { verb: "write", object: after },
    ]);
  });
});

import { describe, expect, it } from "vitest";
import { isMarked, withoutOtherModes } from "./modes.ts";
import type { ModeWords } from "./modes.ts";
import type { RulesObject } from "./objects.ts";

const IPVS_LIKE: ModeWords = { looksIntoSets: true, isOwnJump: (_, rule) => rule.endsWith("-j KUBE-IPVS-FILTER") };
const CHAINS: ModeWords = { looksIntoSets: false, isOwnJump: (_, rule) => rule.endsWith("-j KUBE-NODEPORTS") };
const SETS: RulesObject = { kind: "chain", key: "nat KUBE-SERVICES", value: "-m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT" };
const RULES: readonly RulesObject[] = [
  { kind: "shared", key: "nat KUBE-SERVICES", value: "" },
  { kind: "rule", key: "nat KUBE-SERVICES -d 10.96.0.1/32 -p tcp -j KUBE-SVC-X", value: 1 },
];
const OTHERS: readonly RulesObject[] = [
  { kind: "chain", key: "nat KUBE-MARK-MASQ", value: "-j MARK --set-xmark 0x4000/0x4000" },
  { kind: "chain", key: "filter KUBE-PROXY-CANARY", value: "" },
  { kind: "chain", key: "nat KUBE-SVC-X", value: "" },
  { kind: "jumps", key: "filter INPUT", value: "-j KUBE-NODEPORTS\n-j KUBE-IPVS-FILTER\n-j KUBE-FORWARD" },
  { kind: "jumps", key: "nat PREROUTING", value: "-j KUBE-SERVICES" },
];

describe("chains that several modes have", () => {
  it("are those of whose words are in nat KUBE-SERVICES", () => {
    expect(withoutOtherModes([SETS, ...OTHERS], IPVS_LIKE)).toEqual([SETS, ...OTHERS]);
    expect(withoutOtherModes([...RULES, ...OTHERS], CHAINS)).toEqual([...RULES, ...OTHERS]);
  });

  it("are left to the other mode, with all jumps that it may have, too", () => {
    const chain = OTHERS[2];
    expect(withoutOtherModes([SETS, ...OTHERS], CHAINS)).toEqual([
      chain,
      { kind: "jumps", key: "filter INPUT", value: "-j KUBE-NODEPORTS" },
    ]);
    expect(withoutOtherModes([...RULES, ...OTHERS], IPVS_LIKE)).toEqual([
      chain,
      { kind: "jumps", key: "filter INPUT", value: "-j KUBE-IPVS-FILTER" },
    ]);
  });

  it("are not left to a mode without sets while they look into one", () => {
    const stale: RulesObject = {
      kind: "chain",
      key: "filter KUBE-PROXY-FIREWALL",
      value: "-m set --match-set KUBE-LOAD-BALANCER-FW dst,dst -j DROP",
    };
    expect(withoutOtherModes([...RULES, stale], IPVS_LIKE)).toEqual([stale]);
  });

  it("are whoever's asks where nat KUBE-SERVICES is empty or not there", () => {
    expect(withoutOtherModes(OTHERS, CHAINS)).toEqual(OTHERS);
    const empty: RulesObject = { kind: "shared", key: "nat KUBE-SERVICES", value: "" };
    expect(withoutOtherModes([empty, ...OTHERS], IPVS_LIKE)).toEqual([empty, ...OTHERS]);
  });

  it("are no matter for objects that aren't rules", () => {
    const set = { kind: "set", key: "nat KUBE-SERVICES-LIKE", value: true } as const;
    expect(withoutOtherModes([...RULES, set], IPVS_LIKE)).toEqual([set]);
  });
});

describe("who wrote the rules last", () => {
  const nat = (...rules: readonly string[]): string =>
    `*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-TURNOUT - [0:0]\n${rules.join("\n")}\nCOMMIT\n`;
  const looksIntoSet = "-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT";

  it("is told by the marker: Turnout", () => {
    expect(isMarked(nat("-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -j KUBE-SVC-X"))).toBe(true);
    expect(isMarked(nat("-A KUBE-SERVICES -m set --match-set TURNOUT-LOCAL dst,dst -j TURNOUT-LOCAL", looksIntoSet))).toBe(true);
    expect(isMarked("*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n")).toBe(false);
  });

  it("is kube-proxy in ipvs mode, which leaves the marker, where its rules know no chain of Turnout's", () => {
    expect(isMarked(nat(looksIntoSet))).toBe(false);
  });
});

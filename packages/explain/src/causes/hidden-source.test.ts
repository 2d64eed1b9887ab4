import { describe, expect, it } from "vitest";
import { externalFindings } from "./external-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import { FORWARDED } from "../test-support/forwarded-way.ts";

const CHAINS = ":PREROUTING ACCEPT\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n";
const found = (rule: string, way: Partial<HookedWay> = {}): ReturnType<typeof externalFindings> =>
  externalFindings([readIptablesTable("iptables", "nat", `${CHAINS}${rule}`)], { ...FORWARDED, ...way });
const MASQUERADE = "-A POSTROUTING -d 10.1.0.0/16 -j MASQUERADE";

describe("a rule of others that rewrites the source", () => {
  it("is noted, with what the endpoint sees", () => {
    expect(found(MASQUERADE).notes).toEqual([
      `iptables table nat, chain POSTROUTING, rewrites the source (${MASQUERADE}): 10.1.1.1 sees an address of this node, and not 203.0.113.1`,
    ]);
    expect(found(MASQUERADE, { isTranslated: false, isBySocket: true }).notes).toHaveLength(1);
  });

  it.each<readonly [string, string, Partial<HookedWay>]>([
    ["we ask for masquerade ourselves", MASQUERADE, { endpoint: { ...FORWARDED.endpoint, masquerade: true } }],
    ["the packet is no Service's", MASQUERADE, { isTranslated: false }],
    ["it is for others", "-A POSTROUTING -d 10.9.0.0/16 -j MASQUERADE", {}],
  ])("is not, where %s", (_name, rule, way) => {
    expect(found(rule, way).notes).toBeUndefined();
  });
});

it("a rule of others that sends a packet elsewhere is told, for nothing need listen where it was going", () => {
  const redirect = "-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.1.1.9:8080";
  expect(found(redirect, { isTranslated: false }).isTranslated).toBe(true);
  expect(found(MASQUERADE, { isTranslated: false })).not.toHaveProperty("isTranslated");
});

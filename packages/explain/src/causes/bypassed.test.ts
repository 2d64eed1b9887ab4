import { describe, expect, it } from "vitest";
import { externalFindings } from "./external-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import type { ExternalTable } from "@turnout/host/rules";

const WAY: HookedWay = {
  packet: { family: "IPv4", protocol: "TCP", source: "203.0.113.1", destination: "172.18.0.1", port: 30_001, device: "eth0" },
  endpoint: { ip: "10.1.1.1", port: 8080, nodeName: "n1", isLocal: true, masquerade: false },
  outDevice: "veth1",
  backDevice: "eth0",
  isTranslated: true,
  hasKubeChains: true,
  markBit: 0,
  isLocal: () => false,
  isInSet: () => false,
};

const CALL = "-A PREROUTING -j KUBE-SERVICES";
const nat = (rules: string, tool: "iptables" | "iptables-legacy" = "iptables"): ExternalTable =>
  readIptablesTable(tool, "nat", `-P PREROUTING ACCEPT\n-N OTHER\n-N KUBE-SERVICES\n${rules}`);
const reported = (tables: readonly ExternalTable[], way: Partial<HookedWay> = {}) => externalFindings(tables, { ...WAY, ...way }).causes;

describe("a rule that ends the table before our chain is asked", () => {
  it.each([
    ["accepts", "-A PREROUTING -p tcp -m multiport --dports 30000:32767 -j ACCEPT"],
    ["returns", "-A PREROUTING -i eth0 -j RETURN"],
    ["accepts in a chain of its own", "-A OTHER -j ACCEPT\n-A PREROUTING -i eth0 -j OTHER"],
  ])("is named where it %s, with what deletes it", (_name, rules) => {
    const [cause] = reported([nat(`${rules}\n${CALL}`)]);
    const [rule = ""] = rules.split("\n");
    expect([cause?.id, cause?.instead?.commands]).toEqual(["bypassed", [`iptables -t nat -D ${rule.slice(3)}`]]);
    expect(cause?.says).toContain(
      `lets the packet leave PREROUTING before KUBE-SERVICES is asked at prerouting, so nobody translates it (${rule})`,
    );
  });

  it.each<readonly [string, string, Partial<HookedWay>]>([
    ["comes later", `${CALL}\n-A PREROUTING -j ACCEPT`, {}],
    ["is for others", `-A PREROUTING -s 10.9.0.0/16 -j ACCEPT\n${CALL}`, {}],
    ["returns to the chain that calls ours", `-A OTHER -j RETURN\n-A PREROUTING -j OTHER\n${CALL}`, {}],
    ["is beside a backend with a table of its own", `-A PREROUTING -j ACCEPT\n${CALL}`, { hasKubeChains: false }],
    ["is beside IPVS", `-A PREROUTING -j ACCEPT\n${CALL}`, { isServedAtInput: true }],
    ["is about what is no Service's", `-A PREROUTING -j ACCEPT\n${CALL}`, { isTranslated: false }],
  ])("is not named where it %s", (_name, rules, way) => {
    expect(reported([nat(rules)], way)).toEqual([]);
  });

  it("is not named where the other variant of iptables asks our chain", () => {
    expect(reported([nat(`-A PREROUTING -j ACCEPT\n${CALL}`), nat(CALL, "iptables-legacy")])).toEqual([]);
  });
});

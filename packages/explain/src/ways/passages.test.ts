import { describe, expect, it } from "vitest";
import { externalFindings } from "../causes/external-causes.ts";
import type { HookedWay } from "./hooked-way.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import { readNftTable, readShownTable } from "@turnout/host/nft";
import type { ExternalTable } from "@turnout/host/rules";
import { FORWARDED } from "../test-support/forwarded-way.ts";

const BUILT_IN = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"].map((chain) => `:${chain} ACCEPT\n`).join("");
const iptables = (rules: string, table = "filter"): ExternalTable => readIptablesTable("iptables", table, `${BUILT_IN}${rules}`);
const blamed = (tables: ExternalTable | readonly ExternalTable[], way: Partial<HookedWay> = {}): readonly string[] =>
  externalFindings([tables].flat(), { ...FORWARDED, ...way }).causes.map(({ id }) => id);

describe("from this host to itself", () => {
  const self: Partial<HookedWay> = {
    packet: { ...FORWARDED.packet, source: "172.18.0.1", destination: "10.96.0.9", device: "" },
    endpoint: { ...FORWARDED.endpoint, ip: "172.18.0.1" },
    outDevice: "",
    backDevice: "",
    sentBy: "eth0",
    isLocal: (ip) => ip === "172.18.0.1",
  };

  it.each<readonly [string, string, string, readonly string[]]>([
    ["it comes in by lo, and the answer too", "filter", "-P INPUT DROP\n-A INPUT -i lo -j ACCEPT", []],
    ["it comes in by no other device", "filter", "-A INPUT -i eth0 -j ACCEPT\n-A INPUT -j DROP", ["external_drop", "external_drop"]],
    [
      "at output it leaves by the device of the Service's address",
      "filter",
      "-A OUTPUT -o eth0 -p tcp --dport 8080 -j DROP",
      ["external_drop"],
    ],
    ["behind that it leaves by lo", "mangle", "-A POSTROUTING ! -o lo -j DROP", []],
    ["answers are sent by lo", "filter", "-A OUTPUT ! -o lo -p tcp --sport 8080 -j DROP", []],
    ["it is not translated again", "nat", "-A PREROUTING -i lo -p tcp -j REDIRECT --to-ports 3128", []],
    ["it is tracked already", "raw", "-A PREROUTING -i lo -j CT --notrack", []],
    ["it comes in where answers leave", "raw", "-A PREROUTING -m rpfilter --invert -j DROP", []],
    ["it is not forwarded", "filter", "-P FORWARD DROP", []],
  ])("%s", (_name, table, text, wanted) => {
    expect(blamed(iptables(text, table), self)).toEqual(wanted);
  });

  it("by the device of the endpoint where its socket is translated", () => {
    const { sentBy: _, ...rest } = self;
    expect(blamed(iptables("-A OUTPUT ! -o lo -j DROP"), { ...rest, isTranslated: false, isBySocket: true })).toEqual([]);
  });
});

it("what this host sends to a virtual server of IPVS leaves by lo, until an endpoint is chosen", () => {
  const host = { packet: { ...FORWARDED.packet, source: "172.18.0.1", device: "" }, backDevice: "", isServedAtInput: true };
  expect(blamed(iptables("-A OUTPUT -d 198.51.100.1 -o lo -j DROP", "mangle"), host)).toEqual(["external_drop"]);
  expect(blamed(iptables("-A OUTPUT -d 198.51.100.1 ! -o lo -j DROP", "mangle"), host)).toEqual([]);
});

it("the answer to this host ends at input", () => {
  const host = { packet: { ...FORWARDED.packet, source: "172.18.0.1", device: "" }, backDevice: "" };
  expect(blamed(iptables("-A POSTROUTING -p tcp --sport 8080 -j DROP", "mangle"), host)).toEqual([]);
  expect(blamed(iptables("-A INPUT -p tcp --sport 8080 -j DROP"), host)).toEqual(["external_drop"]);
});

it("what has no route comes to no hook behind it", () => {
  const drop = iptables("-P INPUT DROP\n-P FORWARD DROP\n-P OUTPUT DROP");
  expect(blamed(drop, { outDevice: "", isLost: true })).toEqual([]);
  expect(blamed(drop, { outDevice: "" })).toEqual(["external_drop", "external_drop"]);
});

describe("what programs at devices have told conntrack", () => {
  const reported = { isTranslatedBefore: true };
  const redirect = iptables("-A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 3128", "nat");

  it("no nat chain is asked about, neither of the destination nor of the source", () => {
    const inIptables = { hasKubeChains: true };
    expect([blamed(redirect, inIptables), blamed(redirect, { ...inIptables, ...reported })]).toEqual([["external_translation"], []]);
    const snat = iptables("-A POSTROUTING -j SNAT --to-source 192.0.2.9", "nat");
    const endpoint = { ...FORWARDED.endpoint, isLocal: false };
    const unjudged = (way: Partial<HookedWay>): number => externalFindings([snat], { ...FORWARDED, endpoint, ...way }).unjudged.length;
    expect([unjudged({}), unjudged(reported)]).toEqual([1, 0]);
  });

  it("other chains are, and nat chains about what is not translated", () => {
    expect(blamed(iptables("-A PREROUTING -p tcp --dport 80 -j DROP", "mangle"), reported)).toEqual(["external_drop"]);
    const socket = { packet: { ...FORWARDED.packet, destination: "10.1.1.1", port: 80 }, isTranslated: false, isBySocket: true };
    expect(blamed(redirect, { ...reported, ...socket })).toEqual(["external_translation"]);
    expect(blamed(redirect, { ...reported, isTranslated: false })).toEqual([]);
  });
});

describe("answers that are not tracked", () => {
  const raw = (rule: string): ExternalTable => iptables(rule, "raw");
  const untracked = "-A PREROUTING -p tcp --sport 8080 -j CT --notrack";

  it("are lost where conntrack translates, and said of the answer", () => {
    const [cause] = externalFindings([raw(untracked)], FORWARDED).causes;
    expect([cause?.id, cause?.instead?.commands]).toEqual(["untracked", [`iptables -t raw -D ${untracked.slice(3)}`]]);
    expect(cause?.says).toContain("keeps the answer from being tracked (notrack), so nobody puts its addresses back");
    expect(blamed(raw(untracked), { isTranslated: false })).toEqual([]);
    expect(blamed(raw(untracked), { isServedAtInput: true })).toEqual([]);
  });

  it("of this host are sent by output", () => {
    const own = raw("-A OUTPUT -p tcp --sport 8080 -j CT --notrack");
    expect([blamed(own), blamed(own, { outDevice: "" })]).toEqual([[], ["untracked"]]);
  });

  it("stay tracked where a rule comes behind conntrack", () => {
    expect(blamed(iptables(untracked, "mangle"))).toEqual([]);
  });
});

describe("at the egress of a device", () => {
  const egress = (device: string, ...matches: readonly object[]): ExternalTable => {
    const chain = { family: "netdev", table: "q", name: "e", handle: 1, type: "filter", hook: "egress", prio: 0, policy: "accept" };
    const rule = { family: "netdev", table: "q", chain: "e", handle: 4, expr: [...matches.map((match) => ({ match })), { drop: null }] };
    const shown = `table netdev q { # handle 1\n\tchain e { # handle 1\n\t\ttype filter hook egress ${device} priority filter; policy accept;\n\t}\n}\n`;
    return readNftTable("netdev", "q", { nftables: [{ chain }, { rule }] }, readShownTable(shown));
  };
  const is = (field: string, right: unknown): object => ({
    op: "==",
    left: { payload: { protocol: typeof right === "number" ? "tcp" : "ip", field } },
    right,
  });

  it.each([
    ["what leaves by it is dropped", egress('device "veth1"', is("daddr", "10.1.1.1"), is("dport", 8080)), ["external_drop"]],
    ["by one of several", egress("devices = { veth0, veth1 }", is("daddr", "10.1.1.1")), ["external_drop"]],
    ["by another one nothing leaves", egress('device "veth2"'), []],
    ["answers have the Service's address again", egress('device "eth0"', is("saddr", "198.51.100.1"), is("sport", 80)), ["external_drop"]],
    ["and not the endpoint's", egress('device "eth0"', is("saddr", "10.1.1.1")), []],
  ])("%s", (_name, table, wanted) => {
    expect(blamed(table)).toEqual(wanted);
  });

  it("the source is not known where it is rewritten, and the rule has to go", () => {
    const masqueraded = { ...FORWARDED, endpoint: { ...FORWARDED.endpoint, masquerade: true } };
    expect(externalFindings([egress('device "veth1"', is("saddr", "203.0.113.1"))], masqueraded)).toMatchObject({
      causes: [],
      unjudged: [{ says: "table netdev q, chain e, may drop some packets at egress" }],
    });
    expect(externalFindings([egress('device "veth1"')], FORWARDED).causes[0]?.instead?.commands).toEqual([
      "nft delete rule netdev q e handle 4",
    ]);
  });
});

describe("hooks of bridges", () => {
  const bridge = (hook: string, ...matches: readonly object[]): ExternalTable => {
    const chain = { family: "bridge", table: "b", name: "c", handle: 1, type: "filter", hook, prio: 0, policy: "accept" };
    const rule = { family: "bridge", table: "b", chain: "c", handle: 4, expr: [...matches.map((match) => ({ match })), { drop: null }] };
    return readNftTable("bridge", "b", { nftables: [{ chain }, { rule }] });
  };
  const port = (right: number): object => ({ op: "==", left: { payload: { protocol: "tcp", field: "dport" } }, right });
  const isBridge = (device: string): boolean => device === "cni0";
  const fromPod: Partial<HookedWay> = { packet: { ...FORWARDED.packet, source: "10.1.1.2", device: "cni0" }, backDevice: "cni0", isBridge };
  const toPod: Partial<HookedWay> = { outDevice: "cni0", isBridge };
  const across: Partial<HookedWay> = { ...fromPod, ...toPod };

  it.each<readonly [string, ExternalTable, Partial<HookedWay>, readonly string[]]>([
    ["it comes in with the Service's address", bridge("prerouting", port(80)), fromPod, ["external_drop"]],
    ["and is for this host", bridge("input", port(80)), fromPod, ["external_drop"]],
    ["it leaves with the endpoint's", bridge("output", port(8080)), toPod, ["external_drop"]],
    ["the answer comes in by it", bridge("prerouting"), toPod, ["external_drop"]],
    ["from port to port it is forwarded there", bridge("forward", port(8080)), across, ["external_drop"]],
    ["and neither for this host nor from it", bridge("output"), across, []],
    ["where there is no bridge they are not met", bridge("prerouting"), {}, []],
    ["hooks of IP are others", bridge("forward"), toPod, []],
  ])("%s", (_name, table, way, wanted) => {
    expect(blamed(table, way)).toEqual(wanted);
  });

  it("the rule has to go, and rules about ports of the bridge can't be judged", () => {
    const [cause] = externalFindings([bridge("output", port(8080))], { ...FORWARDED, ...toPod }).causes;
    expect([cause?.says, cause?.instead?.commands]).toEqual([
      expect.stringContaining("table bridge b, chain c, drops the packet at output of the bridge"),
      ["nft delete rule bridge b c handle 4"],
    ]);
    const byPort = bridge("prerouting", { op: "==", left: { meta: { key: "iifname" } }, right: "veth1" });
    const found = externalFindings([byPort], { ...FORWARDED, ...fromPod });
    expect([found.causes, found.unjudged.map(({ says }) => says)]).toEqual([
      [],
      ["table bridge b, chain c, may drop some packets at prerouting of the bridge"],
    ]);
  });

  it("kinds of frames are told apart", () => {
    const type = (right: string): object => ({ op: "==", left: { payload: { protocol: "ether", field: "type" } }, right });
    expect([blamed(bridge("output", type("arp")), toPod), blamed(bridge("output", type("ip")), toPod)]).toEqual([[], ["external_drop"]]);
  });
});

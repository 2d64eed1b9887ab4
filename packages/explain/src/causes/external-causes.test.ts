import type { Cause } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { externalFindings, routedMark } from "./external-causes.ts";
import type { ExternalFindings } from "./external-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import { readNftTable, readShownTable } from "@turnout/host/nft";
import type { ExternalTable } from "@turnout/host/rules";
import { FORWARDED } from "../test-support/forwarded-way.ts";

function iptables(rules: string, way: Partial<HookedWay> = {}, table = "filter"): ExternalFindings {
  const chains = table === "filter" ? ":INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n" : ":PREROUTING ACCEPT\n:OUTPUT ACCEPT\n";
  return externalFindings([readIptablesTable("iptables", table, `${chains}${rules}`)], { ...FORWARDED, ...way });
}

const ids = ({ causes }: ExternalFindings): readonly string[] => causes.map(({ id, isSure }) => `${isSure === false ? "maybe " : ""}${id}`);
const rules = ({ unjudged }: ExternalFindings): readonly string[] => unjudged.map(({ rule }) => rule);

describe("rules that can't be judged", () => {
  it("are named where they may drop, once for packet and answer, and blame nobody", () => {
    const rule = "-A FORWARD -m statistic --mode random --probability 0.9 -j DROP";
    const found = iptables(rule);
    expect([ids(found), rules(found)]).toEqual([[], [rule]]);
    expect(found.unjudged[0]).toMatchObject({
      says: "iptables table filter, chain FORWARD, may drop some packets at forward",
      show: "iptables -t filter -S FORWARD",
    });
  });

  it.each([
    ["it only counts or logs", "-A FORWARD -m limit --limit 5/sec -j LOG"],
    ["it is for others", "-A FORWARD -s 10.9.9.9/32 -m statistic --mode random --probability 0.9 -j DROP"],
    ["it lets packets through", "-A FORWARD -m limit --limit 5/sec -j ACCEPT"],
    ["another rule has let the packet through", "-A FORWARD -j ACCEPT\n-A FORWARD -m limit --limit 5/sec -j DROP"],
    ["what has SYN alone is none of them", "-A FORWARD -p tcp ! --syn -m conntrack --ctstate NEW -m limit --limit 5/sec -j DROP"],
  ])("are not named where %s", (_name, text) => {
    expect(iptables(text).unjudged).toEqual([]);
  });

  it("are followed into the chains they call", () => {
    expect(rules(iptables("-N SLOW\n-A SLOW -j REJECT\n-A FORWARD -m connlimit --connlimit-above 9 -j SLOW"))).toEqual([
      "-A FORWARD -m connlimit --connlimit-above 9 -j SLOW",
    ]);
  });

  it("make a guess of a drop behind them that they may have saved the packet from", () => {
    const found = iptables("-A FORWARD -m limit --limit 5/sec -j ACCEPT\n-A FORWARD -j DROP");
    expect([ids(found)[0], found.causes[0]?.says]).toEqual([
      "maybe external_drop",
      "iptables table filter, chain FORWARD, drops the packet at forward (-A FORWARD -j DROP), unless this rule lets it through, which can't be judged: -A FORWARD -m limit --limit 5/sec -j ACCEPT",
    ]);
  });

  it("are not those about ports that no client sends from", () => {
    expect(
      iptables("-A FORWARD -p tcp -m tcp --dport 22 -j DROP\n-A FORWARD -p tcp -m multiport --dports 1:1023 -j DROP").unjudged,
    ).toEqual([]);
  });

  it("of nft are named in nft's own words, also those that choose at random", () => {
    const listed = {
      nftables: [
        { chain: { family: "inet", table: "fw", name: "f", handle: 1, type: "filter", hook: "forward", prio: 0, policy: "accept" } },
        {
          rule: {
            family: "inet",
            table: "fw",
            chain: "f",
            handle: 4,
            expr: [{ vmap: { key: { numgen: { mode: "random", mod: 2 } }, data: { set: [[0, { drop: null }]] } } }],
          },
        },
      ],
    };
    const shown = "table inet fw { # handle 9\n\tchain f { # handle 1\n\t\tnumgen random mod 2 vmap { 0 : drop } # handle 4\n\t}\n}\n";
    expect(rules(externalFindings([readNftTable("inet", "fw", listed, readShownTable(shown))], FORWARDED))).toEqual([
      "numgen random mod 2 vmap { 0 : drop }",
    ]);
  });
});

describe("rules that can be judged", () => {
  it("are named with their chain, and with what deletes them where that mends it", () => {
    expect(iptables("-A FORWARD -i eth0 -j REJECT").causes[0]?.says).toContain("(-A FORWARD -i eth0 -j REJECT)");
    const [cause] = iptables("-A PREROUTING -s 203.0.113.0/24 -j DROP", {}, "raw").causes;
    expect(cause?.instead?.commands).toEqual(["iptables -t raw -D PREROUTING -s 203.0.113.0/24 -j DROP"]);
  });

  it("are told with what they do, however long they are", () => {
    const rule = (words: string): string => `-A FORWARD -m comment --comment "${words}" -j DROP`;
    const says = (words: string): string => iptables(rule(words)).causes[0]?.says ?? "";
    expect(says("x".repeat(200))).toContain(rule("x".repeat(200)));
    expect(says("x".repeat(2_000))).toMatch(/x{9} … x+" -j DROP\)$/);
  });

  it.each([
    ["SYN alone", "-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP", ["external_drop"]],
    ["not SYN alone, of what is new", "-A FORWARD -p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctstate NEW -j DROP", []],
    ["no flags at all", "-A FORWARD -p tcp -m tcp --tcp-flags ALL NONE -j DROP", []],
  ])("flags of TCP: %s", (_name, text, wanted) => {
    expect([ids(iptables(text)), rules(iptables(text))]).toEqual([wanted, []]);
  });

  it.each<readonly [string, string, readonly string[], readonly string[]]>([
    ["the direction of the packet", "-A FORWARD -m conntrack --ctorigdstport 80 --ctdir ORIGINAL -j DROP", ["external_drop"], []],
    ["the direction of the answer", "-A FORWARD -s 10.1.1.1/32 -m conntrack --ctdir REPLY -j DROP", ["external_drop"], []],
    ["another direction", "-A FORWARD -d 10.1.1.1/32 -m conntrack --ctdir REPLY -j DROP", [], []],
    [
      "what is for many hosts",
      "-A FORWARD -m pkttype --pkt-type broadcast -j DROP\n-A FORWARD -m pkttype --pkt-type multicast -j DROP",
      [],
      [],
    ],
    ["what is for one host", "-A FORWARD -d 10.1.1.1/32 -m pkttype --pkt-type unicast -j DROP", ["external_drop"], []],
    ["what is bridged", "-A FORWARD -m physdev --physdev-is-bridged -j DROP", [], []],
    ["what is not bridged", "-A FORWARD -i eth0 -m physdev ! --physdev-is-bridged -j DROP", ["external_drop"], []],
  ])("matches of iptables: %s", (_name, text, wanted, open) => {
    expect([ids(iptables(text)), rules(iptables(text))]).toEqual([wanted, open]);
  });

  it("what goes from and to one device may be bridged", () => {
    const text = "-A FORWARD -m physdev --physdev-is-bridged -j DROP";
    const found = iptables(text, { packet: { ...FORWARDED.packet, device: "cni0" }, outDevice: "cni0", backDevice: "cni0" });
    expect([ids(found), rules(found)]).toEqual([[], [text]]);
  });

  it.each<readonly [string, object, readonly string[]]>([
    ["the direction of the packet", { op: "==", left: { ct: { key: "direction" } }, right: "original" }, ["external_drop"]],
    ["the direction of the answer", { op: "==", left: { ct: { key: "direction" } }, right: "reply" }, ["external_drop"]],
    ["what is for many hosts", { op: "==", left: { meta: { key: "pkttype" } }, right: { set: ["broadcast", "multicast"] } }, []],
    ["what is for one host", { op: "==", left: { meta: { key: "pkttype" } }, right: "host" }, ["external_drop", "external_drop"]],
  ])("matches of nft: %s", (_name, match, wanted) => {
    const chain = { family: "ip", table: "fw", name: "f", handle: 1, type: "filter", hook: "forward", prio: 0, policy: "accept" };
    const rule = { family: "ip", table: "fw", chain: "f", handle: 4, expr: [{ match }, { drop: null }] };
    const found = externalFindings([readNftTable("ip", "fw", { nftables: [{ chain }, { rule }] })], FORWARDED);
    expect([ids(found), rules(found)]).toEqual([wanted, []]);
  });

  it.each([
    ["flags of TCP, of UDP", { op: "!=", left: { payload: { protocol: "tcp", field: "flags" } }, right: "syn" }],
    ["a port of TCP, of UDP", { op: "!=", left: { payload: { protocol: "tcp", field: "dport" } }, right: 22 }],
    ["an address of the other family", { op: "!=", left: { payload: { protocol: "ip6", field: "saddr" } }, right: "fd00::1" }],
  ])("nft asks for the protocol before it compares: %s", (_name, match) => {
    const chain = { family: "inet", table: "fw", name: "f", handle: 1, type: "filter", hook: "forward", prio: 0, policy: "accept" };
    const rule = { family: "inet", table: "fw", chain: "f", handle: 4, expr: [{ match }, { drop: null }] };
    const table = readNftTable("inet", "fw", { nftables: [{ chain }, { rule }] });
    const found = externalFindings([table], { ...FORWARDED, packet: { ...FORWARDED.packet, protocol: "UDP" } });
    expect([ids(found), rules(found)]).toEqual([[], []]);
  });

  it("the way back: what comes in by the device that answers leave by is let in", () => {
    const rule = "-A PREROUTING -m rpfilter --validmark --invert -j DROP";
    expect(ids(iptables(rule, {}, "raw"))).toEqual([]);
    expect(ids(iptables(rule, { backDevice: "eth1" }, "raw"))).toEqual(["external_drop"]);
  });
});

describe("what mends a drop", () => {
  const fixes = (text: string, way: Partial<HookedWay>): readonly string[] =>
    iptables(text, way).causes.flatMap(({ commands = [] }) => commands);

  it("accepts all that Services translate where this packet is translated, and says so", () => {
    const [cause] = iptables("-A FORWARD -i eth0 -j DROP").causes;
    expect(cause?.commands).toEqual(["iptables -t filter -I FORWARD -m conntrack --ctstate DNAT -j ACCEPT"]);
    expect(cause?.fix).toContain("unless this client is meant to be kept out");
  });

  it("has the rule deleted in place of that, in words of its own, where no program would write it again", () => {
    const instead = (text: string): Cause["instead"] => iptables(text).causes[0]?.instead;
    expect(instead("-A FORWARD -i eth0 -j DROP")).toEqual({
      fix: "if nobody needs the rule, delete it",
      commands: ["iptables -t filter -D FORWARD -i eth0 -j DROP"],
    });
    expect(instead("-P FORWARD DROP")).toBeUndefined();
    expect(instead("-N DOCKER-FORWARD\n-A FORWARD -j DOCKER-FORWARD\n-A DOCKER-FORWARD -j DROP")).toBeUndefined();
  });

  it("accepts no other open connections where answers of Services are dropped", () => {
    expect(fixes("-A FORWARD -s 10.1.1.1/32 -j DROP", {})).toEqual(["iptables -t filter -I FORWARD -m conntrack --ctstate DNAT -j ACCEPT"]);
  });

  it("accepts this address and port where nothing is translated here, and answers where they come by", () => {
    const packet = { ...FORWARDED.packet, destination: "10.1.1.1", port: 8080 };
    expect(fixes("-P FORWARD DROP", { packet, isTranslated: false }).slice(0, 2)).toEqual([
      "iptables -t filter -I FORWARD -d 10.1.1.1 -p tcp --dport 8080 -j ACCEPT",
      "iptables -t filter -I FORWARD -s 10.1.1.1 -p tcp --sport 8080 -j ACCEPT",
    ]);
    expect(fixes("-A INPUT -p tcp -j DROP", { packet, isTranslated: false, outDevice: "" })).toEqual([
      "iptables -t filter -I INPUT -d 10.1.1.1 -p tcp --dport 8080 -j ACCEPT",
    ]);
  });

  it("has fail2ban let in the client of this packet", () => {
    const f2b = "-N f2b-web\n-A FORWARD -j f2b-web\n-A f2b-web -j REJECT";
    expect(fixes(f2b, {})[0]).toBe(`fail2ban-client unban ${FORWARDED.packet.source}`);
  });

  it("deletes the rule where packets come in at a device: nothing is translated there", () => {
    const chain = {
      family: "netdev",
      table: "q",
      name: "ing",
      handle: 1,
      type: "filter",
      hook: "ingress",
      dev: "eth0",
      prio: 0,
      policy: "accept",
    };
    const rule = { family: "netdev", table: "q", chain: "ing", handle: 4, expr: [{ drop: null }] };
    const table = readNftTable("netdev", "q", { nftables: [{ chain }, { rule }] });
    const [cause] = externalFindings([table], FORWARDED).causes;
    expect(cause?.instead?.commands).toEqual(["nft delete rule netdev q ing handle 4"]);
    expect(cause).not.toHaveProperty("commands");
  });
});

describe("what other programs and connections decide", () => {
  const queue = "-A FORWARD -j NFQUEUE --queue-num 3";
  const served = (is: boolean): Partial<HookedWay> => ({ isQueueServed: () => is });

  it("a queue that nobody takes packets out of drops them, unless it is bypassed", () => {
    expect(ids(iptables(queue, served(false)))[0]).toBe("external_drop");
    expect(iptables(`${queue} --queue-bypass`, served(false))).toEqual({ causes: [], unjudged: [] });
    const chain = { family: "ip", table: "fw", name: "f", handle: 1, type: "filter", hook: "forward", prio: 0, policy: "accept" };
    const rule = { family: "ip", table: "fw", chain: "f", handle: 4, expr: [{ queue: { num: { range: [0, 1] } } }] };
    const table = readNftTable("ip", "fw", { nftables: [{ chain }, { rule }] });
    expect(ids(externalFindings([table], { ...FORWARDED, ...served(false) }))[0]).toBe("external_drop");
  });

  it("a queue with a program, or of which nothing is known, can't be judged", () => {
    for (const way of [served(true), {}]) expect([ids(iptables(queue, way)), rules(iptables(queue, way))]).toEqual([[], [queue]]);
  });

  it("a mark that is restored is not known, and only those of its bits that are", () => {
    const bit = { markBit: 0x4000, endpoint: { ...FORWARDED.endpoint, masquerade: true } };
    const restore = "-A FORWARD -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff";
    expect([ids(iptables(restore, bit)), rules(iptables(restore, bit))]).toEqual([[], [restore]]);
    const other = restore.replaceAll("0xffffffff", "0x80");
    expect(iptables(other, bit)).toEqual({ causes: [], unjudged: [] });
    const drop = "-A FORWARD -m mark --mark 0x80/0x80 -j DROP";
    expect(rules(iptables(`${other}\n${drop}`, bit))).toEqual([drop]);
    expect(iptables(`${other}\n${drop.replaceAll("0x80", "0x40")}`, bit)).toEqual({ causes: [], unjudged: [] });
  });

  it("what a connection was opened to is known", () => {
    const drop = (to: string): string => `-A FORWARD -m conntrack --ctorigdst ${to} -j DROP`;
    expect(ids(iptables(drop("198.51.100.1/32")))[0]).toBe("external_drop");
    expect(iptables(drop("198.51.100.2/32"))).toEqual({ causes: [], unjudged: [] });
    const chain = { family: "ip", table: "fw", name: "f", handle: 1, type: "filter", hook: "forward", prio: 0, policy: "accept" };
    const match = { op: "==", left: { ct: { key: "ip daddr", dir: "original" } }, right: "198.51.100.1" };
    const rule = { family: "ip", table: "fw", chain: "f", handle: 4, expr: [{ match }, { drop: null }] };
    expect(ids(externalFindings([readNftTable("ip", "fw", { nftables: [{ chain }, { rule }] })], FORWARDED))[0]).toBe("external_drop");
  });
});

describe("where a client's socket was translated", () => {
  const socket: Partial<HookedWay> = {
    packet: { ...FORWARDED.packet, source: "10.1.1.2", destination: "10.1.1.1", port: 8080, device: "veth2" },
    backDevice: "veth2",
    isTranslated: false,
    isBySocket: true,
  };

  it("the endpoint's address has to be let through, there and back", () => {
    const [cause] = iptables("-A FORWARD -j DROP", socket).causes;
    expect(cause?.fix).toContain(
      "pods on this node connect to the endpoint directly: accept it and its answers by address, before that rule",
    );
    expect(cause?.commands).toEqual([
      "iptables -t filter -I FORWARD -d 10.1.1.1 -p tcp --dport 8080 -j ACCEPT",
      "iptables -t filter -I FORWARD -s 10.1.1.1 -p tcp --sport 8080 -j ACCEPT",
    ]);
    // conntrack sees no translation.
    expect(ids(iptables("-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\n-A FORWARD -j DROP", socket))).toContain("external_drop");
  });

  it("rules about the Service's address are none of its business", () => {
    expect(iptables("-A PREROUTING -d 198.51.100.0/24 -j NOTRACK", socket, "raw").causes).toEqual([]);
    expect(iptables("-A PREROUTING -d 198.51.100.0/24 -j DROP", socket, "raw").causes).toEqual([]);
  });
});

describe("our own chains among those of others", () => {
  const asked = { markBit: 0x4000, endpoint: { ...FORWARDED.endpoint, masquerade: true }, hasKubeChains: true };
  const ours =
    "-N KUBE-FORWARD\n-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT\n-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -j KUBE-FORWARD\n-A FORWARD -j DROP";

  it("accept what has the mark, and answers, before others drop them", () => {
    expect(ids(iptables(ours, asked))).toEqual([]);
    expect(ids(iptables(ours, { ...asked, endpoint: FORWARDED.endpoint }))).toEqual(["external_drop"]);
    // Another proxy's are not looked at here.
    expect(ids(iptables(ours, { ...asked, hasKubeChains: false }))).toContain("external_drop");
  });

  it("are none of others, whatever somebody has put into them", () => {
    expect(ids(iptables(`-N KUBE-FORWARD\n-A KUBE-FORWARD -p tcp -j DROP\n-A FORWARD -j KUBE-FORWARD`, asked))).toEqual([]);
  });

  it("do not end the filter table with KUBE-SERVICES, where kube-proxy's layout rejects", () => {
    const filter = `-P FORWARD DROP\n-N KUBE-SERVICES\n-A FORWARD -m conntrack --ctstate NEW -j KUBE-SERVICES`;
    expect(ids(iptables(filter, { ...asked, endpoint: FORWARDED.endpoint }))).toEqual(["external_drop", "external_drop"]);
  });

  const left = (rule: string, way: Partial<HookedWay> = {}): ExternalFindings => {
    const text = `:POSTROUTING ACCEPT\n:KUBE-POSTROUTING -\n${rule}\n-A POSTROUTING -j KUBE-POSTROUTING`;
    return externalFindings([readIptablesTable("iptables", "nat", text)], { ...FORWARDED, ...asked, ...way });
  };
  const skip = "-A POSTROUTING -d 10.1.0.0/16 -j ACCEPT";

  it("are called too late for masquerade where a rule before them accepts, so that answers go elsewhere", () => {
    const found = left(skip);
    expect(ids(found)).toEqual(["no_masquerade"]);
    expect(found.causes[0]?.says).toContain("10.1.1.1 sees 203.0.113.1, and answers it past this node, untranslated");
    expect(found.causes[0]?.instead?.commands).toEqual(["iptables -t nat -D POSTROUTING -d 10.1.0.0/16 -j ACCEPT"]);
    const own = left(skip, { packet: { ...FORWARDED.packet, source: "10.1.1.1" }, isAnsweredHere: true });
    expect(own.causes[0]?.says).toContain("drops it, as it is its own address");
    expect(ids(left("-A POSTROUTING -d 10.1.0.0/16 -j RETURN"))).toEqual(["no_masquerade"]);
  });

  it.each<readonly [string, string, Partial<HookedWay>]>([
    ["answers come back by this host", skip, { isAnsweredHere: true }],
    ["nobody asked for masquerade", skip, { endpoint: FORWARDED.endpoint }],
    ["the rule is for others", "-A POSTROUTING -d 10.9.0.0/16 -j ACCEPT", {}],
    ["the rule masquerades by itself", "-A POSTROUTING -d 10.1.0.0/16 -j MASQUERADE", {}],
    ["the rule comes later", `-A POSTROUTING -j KUBE-POSTROUTING\n${skip}`, {}],
  ])("are not blamed for where %s", (_name, rule, way) => {
    expect(ids(left(rule, way))).toEqual([]);
  });

  it("are not called too late in silence where that does no harm", () => {
    expect(left(skip, { isAnsweredHere: true }).notes).toEqual([
      expect.stringContaining("10.1.1.1 sees 203.0.113.1, not an address of this node"),
    ]);
  });
});

it("a packet that a rule forwards to another device at ingress is lost", () => {
  const chain = {
    family: "netdev",
    table: "x",
    name: "i",
    handle: 1,
    dev: "eth0",
    type: "filter",
    hook: "ingress",
    prio: 0,
    policy: "accept",
  };
  const rule = { family: "netdev", table: "x", chain: "i", handle: 4, expr: [{ fwd: { dev: "dm0" } }] };
  expect(ids(externalFindings([readNftTable("netdev", "x", { nftables: [{ chain }, { rule }] })], FORWARDED))).toEqual(["external_drop"]);
});

describe("the mark that a packet has where its route is looked up", () => {
  const bit = { markBit: 0x4000, endpoint: { ...FORWARDED.endpoint, masquerade: true } };
  const mangle = (text: string): ExternalTable => readIptablesTable("iptables", "mangle", `:PREROUTING ACCEPT\n${text}`);

  it("is ours where masquerade is asked for, with what others set", () => {
    expect(routedMark([], { ...FORWARDED, ...bit })).toBe(0x4000);
    expect(routedMark([], { ...FORWARDED, markBit: 0x4000 })).toBe(0);
    expect(routedMark([mangle("-A PREROUTING -j MARK --set-xmark 0x20000/0x20000")], { ...FORWARDED, ...bit })).toBe(0x2_4000);
    expect(routedMark([mangle("-A PREROUTING -j CONNMARK --restore-mark")], FORWARDED)).toBe(0);
  });
});

describe("packets that IPVS serves", () => {
  const ofIpvs = (way: Partial<HookedWay> = {}): Partial<HookedWay> => ({ isServedAtInput: true, hasKubeChains: true, ...way });
  const drops = "-p tcp --dport 8080 -j DROP";

  it.each([
    ["no request comes by FORWARD", `-A FORWARD ${drops}`, []],
    ["what is for the Service comes by INPUT", "-A INPUT -p tcp --dport 80 -j DROP", ["external_drop"]],
    ["the endpoint's port is none there", `-A INPUT ${drops}`, []],
    ["what is for the endpoint goes by OUTPUT", `-A OUTPUT ${drops}`, ["external_drop"]],
    ["answers come by FORWARD", "-A FORWARD -p tcp --sport 8080 -j DROP", ["external_drop"]],
    ["conntrack calls none of it translated", `-A OUTPUT -m conntrack --ctstate DNAT -j ACCEPT\n-A OUTPUT ${drops}`, ["external_drop"]],
  ])("%s", (_name, text, wanted) => {
    expect(ids(iptables(text, ofIpvs()))).toEqual(wanted);
  });

  it("get through with what is printed, which names addresses", () => {
    const [input] = iptables("-A INPUT -j DROP", ofIpvs()).causes;
    expect(input?.commands).toEqual(["iptables -t filter -I INPUT -d 198.51.100.1 -p tcp --dport 80 -j ACCEPT"]);
    const [output] = iptables(`-A OUTPUT ${drops}`, ofIpvs()).causes;
    expect(output?.commands).toEqual(["iptables -t filter -I OUTPUT -d 10.1.1.1 -p tcp --dport 8080 -j ACCEPT"]);
  });

  it("need conntrack for their masquerade alone", () => {
    const untracked = (masquerade: boolean): ExternalFindings =>
      iptables("-A PREROUTING -j CT --notrack", ofIpvs({ endpoint: { ...FORWARDED.endpoint, masquerade } }), "raw");
    expect([ids(untracked(false)), ids(untracked(true))]).toEqual([[], ["untracked", "untracked"]]);
  });

  it("have the mark that asks for masquerade where they are routed again", () => {
    const way: HookedWay = { ...FORWARDED, ...ofIpvs(), markBit: 0x4000, endpoint: { ...FORWARDED.endpoint, masquerade: true } };
    expect(routedMark([], way)).toBe(0x4000);
  });

  it("are translated once: nat at OUTPUT has no say", () => {
    const text = ":PREROUTING ACCEPT\n:OUTPUT ACCEPT\n-A OUTPUT -j DNAT --to-destination 10.9.9.9:1";
    expect(ids(externalFindings([readIptablesTable("iptables", "nat", text)], { ...FORWARDED, ...ofIpvs() }))).toEqual([]);
  });
});

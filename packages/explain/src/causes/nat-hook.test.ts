import { describe, expect, it } from "vitest";
import { externalFindings } from "./external-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { readIptablesTable } from "@turnout/host/iptables";
import { readNftTable } from "@turnout/host/nft";
import type { ExternalTable } from "@turnout/host/rules";
import { FORWARDED } from "../test-support/forwarded-way.ts";

/** A table of nft with one base chain of one rule. */
function nft(type: "nat" | "filter", hook: string, prio: number, ...expr: readonly object[]): ExternalTable {
  const name = `t${prio}`;
  const chain = { family: "ip", table: name, name: "c", handle: 1, type, hook, prio, policy: "accept" };
  return readNftTable("ip", name, { nftables: [{ chain }, { rule: { family: "ip", table: name, chain: "c", handle: 4, expr } }] });
}
const BUILT_IN = ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"].map((chain) => `:${chain} ACCEPT\n`).join("");
const KUBE = ":KUBE-SERVICES -\n:KUBE-POSTROUTING -\n";
const nat = (rules: string): ExternalTable => readIptablesTable("iptables", "nat", `${BUILT_IN}${KUBE}${rules}`);

const dnat = { dnat: { addr: "10.9.9.9", port: 80 } };
const snat = { snat: { addr: "198.18.0.1" } };
const drop = { drop: null };
const port = (right: number): object => ({ match: { op: "==", left: { payload: { protocol: "tcp", field: "dport" } }, right } });
const marked = { match: { op: "==", left: { "&": [{ meta: { key: "mark" } }, 0x4000] }, right: 0x4000 } };

const HOST_PORT = "-A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 10.9.9.9:80";
const IPTABLES = { hasKubeChains: true };
const MASQUERADED: Partial<HookedWay> = {
  endpoint: { ...FORWARDED.endpoint, isLocal: false, masquerade: true },
  markBit: 0x4000,
  routeOf: () => ({ is: "none", why: "no_route", says: "Network is unreachable" }),
};

describe("all nat chains of a hook run in one hook of the kernel, in the order of their priorities, until one translates", () => {
  it.each<readonly [string, readonly ExternalTable[], Partial<HookedWay>, readonly string[]]>([
    ["those at dstnat come after ours", [nft("nat", "prerouting", -100, dnat)], {}, []],
    ["iptables' nat does, too", [nat(HOST_PORT)], {}, []],
    ["those at a lower priority come before ours", [nft("nat", "prerouting", -110, dnat)], {}, ["external_translation"]],
    ["those at the same priority may", [nft("nat", "prerouting", -101, dnat)], {}, ["external_translation"]],
    ["those that only accept leave the packet to the others", [nft("nat", "prerouting", -110, { accept: null })], {}, []],
    ["those that drop have dropped", [nft("nat", "prerouting", -110, drop)], {}, ["external_drop"]],
    [
      "the first that translates ends it",
      [nft("nat", "prerouting", -110, drop), nft("nat", "prerouting", -120, dnat)],
      {},
      ["external_translation"],
    ],
    ["other chains have places of their own before it", [nft("filter", "prerouting", -105, port(80), drop)], {}, ["external_drop"]],
    ["and behind it, where the packet is translated", [nft("filter", "prerouting", -99, port(80), drop)], {}, []],
    ["answers meet none of them", [nft("nat", "postrouting", 90, drop)], MASQUERADED, ["external_drop"]],
    ["iptables' KUBE-SERVICES ends it", [nat(`-A PREROUTING -j KUBE-SERVICES\n${HOST_PORT}`)], IPTABLES, []],
    ["and what is before it doesn't", [nat(`${HOST_PORT}\n-A PREROUTING -j KUBE-SERVICES`)], IPTABLES, ["external_translation"]],
    [
      "IPVS translates at input, so all of them come before it",
      [nft("nat", "prerouting", -50, dnat)],
      { ...IPTABLES, isServedAtInput: true },
      ["external_translation"],
    ],
    ["sources: those at srcnat come after ours", [nft("nat", "postrouting", 100, snat)], MASQUERADED, []],
    ["those at a lower priority come before ours", [nft("nat", "postrouting", 90, snat)], MASQUERADED, ["no_way_back"]],
    [
      "those of what keeps its source are met",
      [nft("nat", "postrouting", 100, snat)],
      { ...MASQUERADED, endpoint: { ...FORWARDED.endpoint, isLocal: false } },
      ["no_way_back"],
    ],
    ["the mark is seen before it", [nft("filter", "postrouting", 50, marked, drop)], MASQUERADED, ["external_drop"]],
    ["and cleared behind it", [nft("filter", "postrouting", 150, marked, drop)], MASQUERADED, []],
  ])("%s", (_name, tables, way, wanted) => {
    expect(externalFindings(tables, { ...FORWARDED, ...way }).causes.map(({ id }) => id)).toEqual(wanted);
  });
});

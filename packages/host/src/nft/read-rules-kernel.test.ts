import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { createRandom, pickOne } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { concat, ct, goTo, match, meta, numgen, payload, setMark, vmap } from "../nft-statement/build.ts";
import { printCommand, printRule } from "../nft-statement/print.ts";
import type { NftCommand, NftExpression, NftRuleStatement } from "../nft-statement/syntax.ts";
import type { RunResult } from "../rules/evaluate.ts";
import type { ExternalChain, ExternalRule, ExternalTable } from "../rules/rule.ts";
import { ip, evaluated, SEED, sendThrough, sentPackets } from "../test-support/sent-packets.ts";
import type { Sent } from "../test-support/sent-packets.ts";
import { listedSet } from "./named-sets.ts";
import type { NamedSets } from "./named-sets.ts";
import { readNftRule, readNftTable } from "./read-rules.ts";

const CASES = 150;
const TIMEOUT_MS = 100_000;
const TABLE = "t";
const PLACE = { IPv4: { family: "ip", table: TABLE }, IPv6: { family: "ip6", table: TABLE } } as const;
const MARK = meta("mark");
const isUdp = match(meta("l4proto"), "udp");

/** What may be asked of a packet; of each kind a rule has one at most, because nft refuses rules that contradict themselves. */
function matchesOf(family: IPFamily): Readonly<Record<string, readonly NftRuleStatement[]>> {
  const version = PLACE[family].family;
  const [one, two, three] = [ip(family, 1), ip(family, 2), ip(family, 3)];
  const range: NftExpression = { prefix: { addr: ip(family, 0), len: family === "IPv4" ? 30 : 126 } };
  const [source, destination, port] = [payload(version, "saddr"), payload(version, "daddr"), payload("th", "dport")];
  return {
    source: [
      match(source, two),
      match(source, two, "!="),
      match(source, range),
      match(source, "@addresses"),
      match(source, "@addresses", "!="),
    ],
    destination: [match(destination, one), match(destination, { set: [one, two] }), match(destination, { range: [one, two] }, "!=")],
    pair: [match(concat(source, destination), "@pairs"), match(concat(destination, port), { set: [concat(three, 80), concat(one, 81)] })],
    device: [match(meta("iifname"), "tveth0"), match(meta("iifname"), "tv*", "!="), match(meta("iifname"), "lo")],
    transport: [
      isUdp,
      match(meta("l4proto"), { set: ["tcp", "udp"] }),
      match(payload("udp", "dport"), 80),
      match(payload("tcp", "dport"), { range: [80, 81] }),
      match(payload("tcp", "dport"), 80, "!="),
      match(payload("tcp", "sport"), { range: [1_024, 65_535] }),
      match(concat(destination, payload("tcp", "dport")), { set: [concat(one, 80), concat(three, 81)] }, "!="),
    ],
    conntrack: [
      match(ct("state"), "new", "in"),
      match(ct("state"), "established", "in"),
      match(ct("status"), "dnat", "in"),
      match(ct("direction"), "original"),
      match(ct(`${version} daddr`, "original"), one),
    ],
    mark: [match({ "&": [MARK, 1] }, 1), match(MARK, 0, "!="), match({ "^": [MARK, 3] }, 2), match({ "&": [MARK, 1] }, 2)],
    fib: [match({ fib: { result: "type", flags: ["daddr"] } }, "local"), match({ fib: { result: "type", flags: ["saddr"] } }, "local")],
    // These can't be known.
    random: [match(numgen(2), 1), match(ct("mark"), 0)],
  };
}

/** What a rule does to what fits; packets of TCP are not stopped, since they come again. */
function endsOf(number: number): readonly (readonly NftRuleStatement[])[] {
  const [target, port] = [`sub${number}`, payload("th", "dport")];
  return [
    [{ accept: null }],
    [{ return: null }],
    [{ continue: null }],
    [{ jump: { target } }],
    [goTo(target)],
    [setMark({ "|": [MARK, 1] })],
    [setMark({ "^": [MARK, 3] })],
    [setMark(2), match({ "&": [MARK, 2] }, 2), { jump: { target } }],
    [setMark(4), match(MARK, 5), { accept: null }],
    [
      vmap(port, {
        set: [
          [80, { jump: { target } }],
          [81, { accept: null }],
        ],
      }),
    ],
    [vmap(concat(meta("l4proto"), port), "@verdicts")],
    [],
  ];
}

/** Rules, as commands: for each case a chain that it goes through, one that may be called, and one for translation; and a packet. */
function generate(family: IPFamily, random: () => number): { readonly commands: readonly NftCommand[]; readonly sent: readonly Sent[] } {
  const place = PLACE[family];
  const matches = matchesOf(family);
  const version = family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
  const rule = (chain: string, ...expr: readonly NftRuleStatement[]): NftCommand => ({ add: { rule: { ...place, chain, expr } } });
  const chain = (name: string, base: object = {}): NftCommand => ({ add: { chain: { ...place, name, ...base } } });
  const asked = (): readonly NftRuleStatement[] =>
    Object.keys(matches)
      .filter(() => random() < 0.15)
      .map((kind) => pickOne(matches[kind] ?? [], random));
  const numbers = Array.from({ length: CASES }, (_, number) => number);
  const sent = sentPackets(CASES, family, random);
  const counter: NftRuleStatement = { counter: null };
  // nft takes only one match of a protocol in a rule.
  const stop = (parts: readonly NftRuleStatement[]): readonly NftRuleStatement[] =>
    matches["transport"]?.some((one) => parts.includes(one)) === true
      ? [counter]
      : [isUdp, counter, pickOne([{ drop: null }, { reject: null }], random)];
  const rulesIn = (name: string, number: number, count: number): readonly NftCommand[] =>
    Array.from({ length: count }, () => {
      const parts = asked();
      const end = random() < 0.15 ? stop(parts) : [counter, ...pickOne(endsOf(number), random)];
      return rule(name, ...parts, ...end);
    });
  const bySource = (base: string, to: string): readonly NftCommand[] =>
    sent.map(({ sourcePort }, number) =>
      rule(base, match(payload("th", "sport"), sourcePort), counter, { jump: { target: `${to}${number}` } }),
    );
  const seen = concat(payload("th", "sport"), payload(PLACE[family].family, "daddr"), payload("th", "dport"), MARK);
  return {
    sent,
    commands: [
      { add: { table: { family: place.family, name: TABLE } } },
      { add: { set: { ...place, name: "addresses", type: version } } },
      { add: { set: { ...place, name: "pairs", type: [version, version] } } },
      { add: { map: { ...place, name: "verdicts", type: ["inet_proto", "inet_service"], map: "verdict" } } },
      {
        add: { set: { ...place, name: "seen", type: ["inet_service", version, "inet_service", "mark"], size: 9_999, flags: ["dynamic"] } },
      },
      chain("pre", { type: "filter", hook: "prerouting", prio: -150 }),
      chain("nat", { type: "nat", hook: "prerouting", prio: -100 }),
      chain("post", { type: "filter", hook: "input", prio: 0 }),
      ...numbers.flatMap((number) => [chain(`case${number}`), chain(`nat${number}`), chain(`sub${number}`)]),
      ...bySource("pre", "case"),
      ...bySource("nat", "nat"),
      rule("post", { set: { op: "update", elem: seen, set: "@seen" } }),
      ...numbers.flatMap((number) => [
        // Called chains lead nowhere else.
        rule(`sub${number}`, ...asked(), counter, ...pickOne([[{ accept: null }], [{ return: null }], [setMark(6)], []], random)),
        ...rulesIn(`case${number}`, number, 5),
        rule(`nat${number}`, isUdp, ...asked().filter((part) => matches["transport"]?.includes(part) !== true), counter, {
          dnat: { addr: ip(family, 3), port: 99 },
        }),
      ]),
    ],
  };
}

/** The same table, of the commands as they were given: so the host in memory reads it. */
function givenTable(commands: readonly NftCommand[], sets: NamedSets): ExternalTable {
  const chains = new Map<string, ExternalChain & { readonly rules: ExternalRule[] }>();
  for (const command of commands) {
    if (!("add" in command)) continue;
    if ("chain" in command.add) chains.set(command.add.chain.name, { name: command.add.chain.name, rules: [] });
    if (!("rule" in command.add)) continue;
    const { chain, expr = [] } = command.add.rule;
    chains.get(chain)?.rules.push({ ...readNftRule(expr, sets), text: printRule(expr), deletion: "" });
  }
  return { name: TABLE, tool: "nft", place: TABLE, chains };
}

/** What comes of a packet, however the rules were read. */
function outcome({ is, mark, isCertain, destination, matched }: RunResult): unknown {
  return { is, mark, isCertain, destination, matched: matched.length };
}

/** What nft lists, as far as it is looked at. */
interface Listed {
  readonly name?: string;
  readonly chain?: string;
  readonly handle?: number;
  readonly elem?: readonly unknown[];
  readonly expr?: readonly Readonly<Record<string, { readonly packets?: number }>>[];
}

type Entry = Readonly<Record<string, Listed>>;

/** Handles of rules, as often as packets were counted by them, by chain. */
function countsIn(entries: readonly Entry[]): ReadonlyMap<string, readonly number[]> {
  const counts = new Map<string, number[]>();
  for (const { rule } of entries) {
    const counted = counts.get(rule?.chain ?? "") ?? [];
    // Whether a map had a verdict shows in what it leads to only.
    const packets =
      rule?.expr?.some((statement) => "vmap" in statement) === true
        ? 0
        : rule?.expr?.reduce((sum, { counter }) => sum + (counter?.packets ?? 0), 0);
    counts.set(rule?.chain ?? "", [...counted, ...Array.from({ length: packets ?? 0 }, () => rule?.handle ?? 0)]);
  }
  return counts;
}

function setsIn(entries: readonly Entry[]): NamedSets {
  const sets = entries.flatMap(({ set, map }) => set ?? map ?? []);
  return new Map(sets.map(({ name = "", elem = [] }) => [name, listedSet(elem)]));
}

function inOrder(handles: readonly number[]): readonly number[] {
  return handles.toSorted((one, other) => one - other);
}

/** What came to the last chain: `source port . destination . port . mark`. */
function seenIn(entries: readonly Entry[]): ReadonlySet<string> {
  const elements = entries.flatMap(({ set }) => (set?.name === "seen" ? (set.elem ?? []) : []));
  return new Set(elements.map((element) => (element as { readonly concat: readonly unknown[] }).concat.join(" . ")));
}

describe.each(FAMILIES)("the evaluator says what the kernel does, %s", (family) => {
  it("with generated rules, as nft lists them", { ...needs("root", "netns", "nft>=1.0.6"), timeout: TIMEOUT_MS }, () => {
    const { commands, sent } = generate(family, createRandom(SEED));
    const { family: version } = PLACE[family];
    const elements = [
      `add element ${version} ${TABLE} addresses { ${ip(family, 4)} }`,
      `add element ${version} ${TABLE} pairs { ${ip(family, 2)} . ${ip(family, 1)}, ${ip(family, 4)} . ${ip(family, 3)} }`,
      `add element ${version} ${TABLE} verdicts { udp . 80 : accept, tcp . 81 : return, udp . 95 : drop }`,
    ];
    const input = `${[...commands.map(printCommand), ...elements].join("\n")}\n`;
    const list = `nft -j list table ${version} ${TABLE}`;
    const listed = JSON.parse(sendThrough({ load: "nft -f -", list }, family, input, sent)) as { readonly nftables: readonly Entry[] };
    const [table, counts, seen] = [readNftTable(version, TABLE, listed), countsIn(listed.nftables), seenIn(listed.nftables)];
    const given = givenTable(commands, setsIn(listed.nftables));
    const handleOf = ({ deletion }: { readonly deletion: string }): number => Number(deletion.split(" ").at(-1));
    let judged = 0;
    for (const [number, packet] of sent.entries()) {
      const first = evaluated(table, "pre", packet, family);
      const second = evaluated(table, "nat", packet, family, { mark: first.mark });
      const entry = first.matched[0]?.rule;
      // Where an answer was lost, the packet has come twice.
      const arrivals = counts.get("pre")?.filter((handle) => entry !== undefined && handle === handleOf(entry)).length;
      expect(outcome(evaluated(given, "pre", packet, family))).toEqual(outcome(first));
      if (!first.isCertain || !second.isCertain || arrivals !== 1) continue;
      judged++;
      const { address = packet.destination, port = packet.destinationPort } = second.destination ?? {};
      const end = `${packet.sourcePort} . ${address} . ${port} . ${first.mark}`;
      const says = first.matched
        .filter(({ chain, rule }) => chain !== "pre" && !rule.text.includes("vmap"))
        .map(({ rule }) => handleOf(rule));
      const chains = [`case${number}`, `sub${number}`];
      const rules = chains.flatMap((name) => (table.chains.get(name)?.rules ?? []).map((rule) => `${handleOf(rule)} ${rule.text}`));
      const seed = SEED;
      expect({
        seed,
        packet,
        rules,
        matched: inOrder(says),
        end: first.is === "pass" ? end : "stopped",
      }).toEqual({
        seed,
        packet,
        rules,
        matched: inOrder(chains.flatMap((name) => counts.get(name) ?? [])),
        end: [...seen].find((one) => one.startsWith(`${packet.sourcePort} . `)) ?? "stopped",
      });
    }
    // The others ask for what can't be known.
    expect(judged).toBeGreaterThan(CASES / 2);
  });
});

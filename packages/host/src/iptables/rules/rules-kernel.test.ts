import { FAMILIES, hostPort } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { createRandom, pickOne } from "@turnout/core/testing";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { ip, evaluated, PORTS, SEED, sendThrough, sentPackets } from "../../test-support/sent-packets.ts";
import type { Sent } from "../../test-support/sent-packets.ts";
import { RecentLists } from "../../rules/recent-lists.ts";
import { readIptablesTable } from "./listed-rules.ts";

const CASES = 120;
const VARIANTS = ["nft", "legacy"] as const;
/** The chain that packets come to, by table. */
const BASES: Readonly<Record<string, string>> = { filter: "INPUT", mangle: "INPUT", nat: "PREROUTING" };

function matchesOf(family: IPFamily): readonly string[] {
  const [one, two, range] = [ip(family, 1), ip(family, 2), family === "IPv4" ? "10.9.0.0/30" : "fd09::/126"];
  return [
    `-s ${two}`,
    `! -s ${two}`,
    `-s ${range}`,
    `-d ${one}`,
    `! -d ${range}`,
    "-i tveth0",
    "! -i tv+",
    "-i lo",
    "-p udp",
    "! -p tcp",
    "-p udp --dport 80",
    "-p tcp --dport 80:81",
    "-p tcp ! --sport 1024:65535",
    "-p tcp --syn",
    "-p tcp --tcp-flags SYN,ACK ACK",
    "-p udp -m multiport --dports 80,90:99",
    "-p tcp -m multiport ! --ports 82",
    `-m iprange --src-range ${two}-${ip(family, 3)}`,
    `-m iprange ! --dst-range ${two}-${ip(family, 3)}`,
    "-m addrtype --dst-type LOCAL",
    "-m addrtype --src-type LOCAL",
    "-m addrtype ! --src-type UNICAST",
    `-m addrtype --src-type UNICAST,MULTICAST --dst-type LOCAL${family === "IPv4" ? ",BROADCAST" : ""}`,
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED,RELATED",
    "-m conntrack ! --ctstate INVALID,DNAT",
    "-m state --state NEW",
    "-m conntrack --ctstatus NONE",
    "-m conntrack ! --ctstatus CONFIRMED",
    "-m conntrack --ctdir ORIGINAL",
    `-m conntrack --ctorigdst ${one}`,
    "-m mark --mark 0x1/0x1",
    "-m mark ! --mark 0x0",
    "-m mark --mark 0x2/0x1",
    "-m pkttype --pkt-type unicast",
    "-m physdev ! --physdev-is-bridged",
    '-m comment --comment "a \\"b\\" -j DROP"',
    "-m statistic --mode random --probability 0.5",
    "-m statistic --mode random --probability 1",
    "-m recent --rcheck --name LIST --seconds 60",
    "-m recent --set --name LIST",
    "-m recent ! --update --name LIST",
    "-m recent --remove --name LIST",
    "-m limit --limit 1/sec",
  ];
}

/** Where packets may be translated to; all of them are the receiver's. */
const places = (family: IPFamily): readonly (readonly [address: string, port: number])[] =>
  [1, 3].flatMap((number) => PORTS.map((port) => [ip(family, number), port] as const));

function targetsOf(table: string, family: IPFamily): readonly string[] {
  const translated = places(family).map(([address, port]) => `-p udp -j DNAT --to-destination ${hostPort(address, port)}`);
  const plain = `-j DNAT --to-destination ${ip(family, 3)}`;
  return table === "nat"
    ? [...translated, plain, plain, "-j ACCEPT", "-j RETURN", "-j SUB", "-j SUB", "-g SUB", ""]
    : (TARGETS[table] ?? []);
}

const TARGETS: Readonly<Record<string, readonly string[]>> = {
  mangle: [
    "-j ACCEPT",
    "-j RETURN",
    "-j MARK --or-mark 0x1",
    "-j MARK --xor-mark 0x3",
    "-j MARK --set-mark 0x2/0x2",
    "-j SUB",
    "-g SUB",
    "",
  ],
  filter: ["-j ACCEPT", "-j RETURN", "-p udp -j REJECT", "-j SUB", "-g SUB", ""],
};

/** A chain for each case, with a chain that it may call, and a packet. */
function generate(table: string, family: IPFamily, random: () => number): { readonly input: string; readonly sent: readonly Sent[] } {
  const ruleIn = (chain: string, number: number): string => {
    const target = pickOne(targetsOf(table, family), random);
    const matches = Array.from({ length: Math.floor(random() * 3) }, () => pickOne(matchesOf(family), random));
    // A rule has one of each of its heads, and of each option of a match.
    const kinds = [target, ...matches].map((match) => /-m \w+|-\w/.exec(match.replace("! ", ""))?.[0]);
    const some = matches.filter((_, index) => kinds.indexOf(kinds[index + 1]) === index + 1);
    const to = chain.startsWith("SUB") ? target.replace(/-[jg] SUB/, "-j RETURN") : target.replace("SUB", `SUB${number}`);
    return `-A ${chain} ${some.join(" ").replaceAll("LIST", `tl${number}`)} ${to}`;
  };
  const numbers = Array.from({ length: CASES }, (_, number) => number);
  const sent = sentPackets(CASES, family, random);
  const lines = [
    ...numbers.flatMap((number) => [`:CASE${number} - [0:0]`, `:SUB${number} - [0:0]`]),
    ...sent.map(
      ({ protocol, sourcePort }, number) => `-A ${BASES[table]} -p ${protocol} -m ${protocol} --sport ${sourcePort} -j CASE${number}`,
    ),
    ...numbers.flatMap((number) => [...Array.from({ length: 5 }, () => ruleIn(`CASE${number}`, number)), ruleIn(`SUB${number}`, number)]),
  ];
  // Where a packet has come to is counted behind all that may translate it.
  const arrived = sent.flatMap(({ protocol, sourcePort }) =>
    places(family).map(([address, port]) => `-A INPUT -d ${address} -p ${protocol} -m ${protocol} --sport ${sourcePort} --dport ${port}`),
  );
  const counting = table === "nat" ? `*mangle\n${arrived.join("\n")}\nCOMMIT\n` : "";
  return { input: `*${table}\n${lines.join("\n")}\nCOMMIT\n${counting}`, sent };
}

/** Rules by chain, as often as packets were counted by them. */
function countedIn(saved: string, chain: RegExp): readonly string[] {
  return [...saved.matchAll(/^\[(\d+):\d+\] (-A (\S+).*)$/gm)].flatMap(([, packets, rule = "", name = ""]) =>
    chain.test(name) ? Array.from({ length: Number(packets) }, () => rule.trim()) : [],
  );
}

describe.each(FAMILIES)("the evaluator says what the kernel does, %s", (family) => {
  const cases = VARIANTS.flatMap((variant) => Object.keys(BASES).map((table) => [variant, table] as const));
  it.each(cases)("with generated rules, %s %s", needs("root", "netns", "iptables>=1.8.9"), (variant, name) => {
    const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
    const { input, sent } = generate(name, family, createRandom(SEED));
    const saved = sendThrough({ load: `${tool}-restore`, list: `${tool}-save -c` }, family, input, sent);
    const [own = "", other = ""] = [name, "mangle"].map((one) => saved.split(/^\*/m).find((part) => part.startsWith(`${one}\n`)));
    const table = readIptablesTable(family === "IPv4" ? "iptables" : "ip6tables", name, own);
    const recents = new RecentLists();
    let judged = 0;
    for (const [number, packet] of sent.entries()) {
      const { isCertain, matched, destination } = evaluated(table, BASES[name] ?? "", packet, family, {
        recent: (asked) => recents.ask(asked, 0),
      });
      // Where an answer was lost, the packet has come twice.
      const isOfPacket = (rule: string): boolean => rule.includes(`--sport ${packet.sourcePort} `);
      if (!isCertain || countedIn(own, new RegExp(`^${BASES[name]}$`)).filter(isOfPacket).length > 1) continue;
      judged++;
      const says = matched.filter(({ chain }) => chain !== BASES[name]).map(({ rule }) => rule.text);
      const does = countedIn(own, new RegExp(`^(?:CASE|SUB)${number}$`));
      expect({ seed: SEED, number, packet, says: says.toSorted() }).toEqual({ seed: SEED, number, packet, says: does.toSorted() });
      if (name !== "nat") continue;
      const { address = packet.destination, port = packet.destinationPort } = destination ?? {};
      const arrived = countedIn(other, /^INPUT$/).filter((rule) => isOfPacket(rule) && rule.endsWith(` --dport ${port}`));
      expect({ seed: SEED, number, packet, arrived: arrived[0] }).toMatchObject({
        arrived: expect.stringContaining(`-d ${address}/`) as string,
      });
    }
    // The others ask for what can't be known, or for what is not followed.
    expect(judged).toBeGreaterThan(CASES / 2);
  });
});

import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { DSTNAT } from "@turnout/host/nft";
import { newPacket, translatingRules, verdictOf } from "@turnout/host/rules";
import type { ExternalChain, ExternalRule, ExternalTable, Unmarked, Verdict } from "@turnout/host/rules";
import { deviceGroups } from "./device-groups.ts";
import { bySeverity } from "./finding.ts";
import type { Finding, KnownProxy } from "./finding.ts";
import { isProxyChain, KUBE_SERVICES } from "../tables/external-tables.ts";
import type { HostSurvey } from "../readings/survey.ts";

/** Rules, or devices, that are named, at most. */
const NAMED_MAX = 4;

/** What foreign rules say against a service proxy: what they drop, and what they translate first. Pure. */
export function ruleFindings(survey: HostSurvey, proxy: KnownProxy): readonly Finding[] {
  const found = drops(survey, proxy);
  return [...found, ...(found.length === 0 ? selective(survey) : []), ...translatesFirst(survey, proxy)];
}

/** Rules that drop some packets are what firewalls are for: which, only one packet can tell. */
function selective(survey: HostSurvey): readonly Finding[] {
  const present = familiesOf(survey);
  const tables = new Map(calledChains(survey).map(({ table, families }) => [table, families]));
  const all = Array.from(tables).flatMap(([table, of]) => {
    const families = present.filter((family) => of.includes(family));
    return [...table.chains.values()].flatMap(({ name, rules }) =>
      isProxyChain(name)
        ? []
        : rules.filter((rule) => mayDrop(rule, families)).map((rule) => ({ where: `${table.name}, chain ${name}`, rule })),
    );
  });
  const [first] = all;
  if (first === undefined) return [];
  const [says, places] = all.length === 1 ? ["1 rule", ""] : [`${all.length} rules`, ", and others"];
  return [
    {
      id: "drops-some",
      severity: "note",
      what: `${says} of other programs may drop some packets`,
      because: `${first.where}: ${first.rule.text}${places}`,
      fix: "nothing, as long as no packet is missed; of one packet tells: turnout why FROM TO:PORT",
    },
  ];
}

/** Whether a rule drops what may be a new connection's packet. */
function mayDrop({ tests, actions }: ExternalRule, families: readonly IPFamily[]): boolean {
  return families.map(newPacket).some((packet) => {
    const chosen = actions.flatMap((step) => (typeof step === "function" ? (step(packet) ?? []) : [step]));
    return chosen.some(({ does }) => does === "drop" || does === "reject") && tests.every((test) => test(packet) !== false);
  });
}

/** A chain that the kernel calls, of either tool. */
interface Called {
  readonly table: ExternalTable;
  readonly chain: ExternalChain;
  readonly hook: string;
  /** Whose packets come there. */
  readonly families: readonly IPFamily[];
  /** Name a chain of that table, e.g. `chain inet firewalld filter_FORWARD`. */
  readonly nameOf: (chain: string) => string;
  /** The command that lets through what a match fits, in iptables' words or nft's. */
  readonly acceptOf: (match: Readonly<Record<"iptables" | "nft", string>>) => string;
}

/** What can't pass is lost: by hook, who sends or gets that. */
const CONCERNED: Readonly<Record<string, string>> = {
  prerouting: "packets that come to this host",
  input: "packets to this host itself: node ports and Services whose endpoints have its address",
  forward: "packets to endpoints in pods and on other nodes",
  output: "packets that this host sends itself",
  postrouting: "packets that leave this host, or go to its pods",
  ingress: "packets that come by a device",
};

/** The same where a process answers Services. */
const CONCERNED_OF_PROCESS: typeof CONCERNED = {
  ...CONCERNED,
  input: "packets to this host itself: all that is for Services, which the proxy's process answers, and what endpoints answer it",
  forward: "packets of pods to pods and to other hosts; none of Services, which the proxy's process answers",
  output: "packets that this host sends itself: to endpoints, and answers to clients, as the proxy's process does",
};

/** Where a packet of a device can be told by it. */
const DEVICES_AT: Readonly<Record<string, readonly ("inDevice" | "outDevice")[]>> = {
  prerouting: ["inDevice"],
  forward: ["inDevice", "outDevice"],
  postrouting: ["outDevice"],
};
/** The same where a process answers Services: nothing of them is forwarded. */
const DEVICES_AT_OF_PROCESS: typeof DEVICES_AT = {
  prerouting: ["inDevice"],
  input: ["inDevice"],
  output: ["outDevice"],
  postrouting: ["outDevice"],
};

/** Hooks where the destination is still the Service's. */
const BEFORE_TRANSLATION: ReadonlySet<string> = new Set(["prerouting", "ingress"]);

function drops(survey: HostSurvey, proxy: KnownProxy): readonly Finding[] {
  const families = familiesOf(survey);
  const called = calledChains(survey).filter(({ hook }) => hook in CONCERNED);
  return called.flatMap((one) => {
    const asked = families.filter((family) => one.families.includes(family));
    const [first] = bySeverity(asked.flatMap((family) => dropsAll(one, mildest(one, asksOf(family, one, proxy)), proxy)));
    // What is dropped whatever its device is said once.
    const ofDevices = first?.severity === "fault" ? [] : dropsOfDevices(one, asked, survey, proxy);
    return [...(first === undefined ? [] : [first]), ...ofDevices];
  });
}

function dropsAll(one: Called, { is, chain = "", rule }: Verdict, proxy: KnownProxy): readonly Finding[] {
  const { hook, nameOf } = one;
  const [needed, otherHook] = proxy.answersItself ? ["input", "forward"] : ["forward", "input"];
  // A firewall that lets some things in is what firewalls are for; of packets of Services it can't know.
  if (is === "through" || (is === "some" && hook !== needed)) return [];
  const isAll = is === "none";
  const unlessKnown = proxy.answersItself
    ? "packets to this host unless they know them: Services are answered, and endpoints heard, only where somebody told it so"
    : "forwarded packets unless they know them: pods and Services are reached only where somebody told it so";
  return [
    {
      id: `drops-${hook}`,
      severity: isAll && hook !== otherHook ? "fault" : "risk",
      what: isAll
        ? `another program's rules drop every new connection there: ${(proxy.answersItself ? CONCERNED_OF_PROCESS : CONCERNED)[hook] ?? hook}`
        : `another program's rules drop ${unlessKnown}`,
      because: `${nameOf(chain)} ${rule === undefined ? "has the policy drop" : `ends with a rule that drops all: ${rule.text}`}`,
      // Nothing is translated yet: only what drops can be taken away.
      fix: BEFORE_TRANSLATION.has(hook) ? (rule?.deletion ?? `give ${nameOf(chain)} the policy accept`) : acceptText(one, proxy),
    },
  ];
}

/** What lets Services through: what was translated for them; of a process' packets the kernel knows no such thing. */
function acceptText({ hook, acceptOf }: Called, { answersItself }: KnownProxy): string {
  if (!answersItself)
    return `${acceptOf({ iptables: "-m conntrack --ctstate DNAT", nft: "ct status dnat" })} (lets through what a Service was asked for; better: tell that firewall)`;
  const asked = "turnout why FROM TO:PORT says of one packet what lets it through";
  if (hook !== "input") return asked;
  const known = acceptOf({ iptables: "-m conntrack --ctstate RELATED,ESTABLISHED", nft: "ct state established,related" });
  const ports = acceptOf({ iptables: "-p tcp --dport 30000:32767", nft: "tcp dport 30000-32767" });
  return `accept answers, node ports, and likewise the ranges of Services' addresses: ${known}; ${ports}. Or ${asked}`;
}

/** Devices behind which there are other hosts or many pods, and that nothing is forwarded from or to. */
function dropsOfDevices(one: Called, families: readonly IPFamily[], survey: HostSurvey, proxy: KnownProxy): readonly Finding[] {
  const verdictOfDevice = (known: Partial<Unmarked>): Verdict | undefined =>
    families.map((family) => mildest(one, asksOf(family, one, proxy, known))).find(({ is }) => is === "none");
  const lost = ((proxy.answersItself ? DEVICES_AT_OF_PROCESS : DEVICES_AT)[one.hook] ?? []).flatMap((side) => {
    const verb = side === "inDevice" ? "come by" : "leave by";
    return deviceGroups(survey).flatMap(({ devices, named }) => {
      const verdicts = devices.map((device) => verdictOfDevice({ [side]: device }));
      const [verdict] = verdicts;
      return verdict === undefined || verdicts.includes(undefined) ? [] : [{ says: `${verb} ${named}`, verdict }];
    });
  });
  const byPlace = Map.groupBy(lost, ({ verdict }) => verdict.rule ?? verdict.chain);
  return [...byPlace.values()].map((all) => {
    const [{ verdict: { chain = "", rule } } = { verdict: {} as Verdict }] = all;
    const said = all.map(({ says }) => says);
    const more = said.length > NAMED_MAX ? `, and ${said.length - NAMED_MAX} more` : "";
    const accept = BEFORE_TRANSLATION.has(one.hook) ? `give ${one.nameOf(chain)} the policy accept` : acceptText(one, proxy);
    return {
      id: "drops-device",
      severity: "fault",
      what: `another program's rules drop every new connection whose packets ${said.slice(0, NAMED_MAX).join(" or ")}${more}: that is all traffic of pods and Services with what is behind it`,
      because: `${one.nameOf(chain)} ${rule === undefined ? "has the policy drop, and no rule accepts them" : `has the rule ${rule.text}`}`,
      fix: rule === undefined ? accept : `${rule.deletion}; or ${accept}`,
    };
  });
}

/** Packets that are asked with: one of which nothing is known, and one that a Service translates. */
function asksOf(family: IPFamily, { hook }: Called, { answersItself }: KnownProxy, known: Partial<Unmarked> = {}): readonly Unmarked[] {
  const packet = { ...newPacket(family), ...known };
  return answersItself || BEFORE_TRANSLATION.has(hook) ? [packet] : [packet, { ...packet, isTranslated: true }];
}

/** What passes once a Service has translated it is not against Services. */
function mildest({ table, chain }: Called, packets: readonly Unmarked[]): Verdict {
  const verdicts = packets.map((packet) => verdictOf(table, chain, packet));
  return verdicts.find(({ is }) => is === "through") ?? verdicts[0] ?? { is: "through" };
}

/** IPv6 counts where this host has an address of it that leads further than a link. */
function familiesOf({ addresses }: HostSurvey): readonly IPFamily[] {
  const others = addresses.filter(({ ip }) => !ip.startsWith("127.") && ip !== "::1" && !ip.startsWith("fe80:"));
  if (others.length === 0) return FAMILIES;
  return FAMILIES.filter((family) => others.some(({ ip }) => ip.includes(":") === (family === "IPv6")));
}

const FAMILIES_OF: Readonly<Record<string, readonly IPFamily[]>> = { ip: ["IPv4"], ip6: ["IPv6"], inet: FAMILIES, netdev: FAMILIES };

/** Whose packets a table sees. */
function familiesIn({ tool, place }: ExternalTable): readonly IPFamily[] {
  return tool === "nft" ? (FAMILIES_OF[place.split(" ", 1)[0] ?? ""] ?? []) : [tool.startsWith("ip6") ? "IPv6" : "IPv4"];
}

/** The program that has a table of iptables. */
function programOf({ tool }: ExternalTable): string {
  return tool.endsWith("-legacy") ? tool : `${tool}-nft`;
}

/** Chains that packets come to and that filter: nft's by their type, iptables' in all tables but nat. */
function calledChains({ external }: HostSurvey): readonly Called[] {
  return external.flatMap((table) => {
    const { tool, place, chains } = table;
    const isNft = tool === "nft";
    const program = programOf(table);
    return [...chains.values()].flatMap((chain): readonly Called[] => {
      const { hook, name } = chain;
      if (hook === undefined || (isNft ? hook.type !== "filter" : hook.type === "nat")) return [];
      return [
        {
          table,
          chain,
          hook: hook.at,
          families: familiesIn(table),
          nameOf: (one) => (isNft ? `chain ${place} ${one}` : `${program} chain ${one} of table ${place}`),
          acceptOf: ({ nft, iptables }) =>
            isNft ? `nft insert rule ${place} ${name} ${nft} accept` : `${program} -t ${place} -I ${name} ${iptables} -j ACCEPT`,
        },
      ];
    });
  });
}

/**
 * Where a proxy's own chain comes among the nat chains at prerouting: they run in the order of their priorities. A process that answers comes after all
 * of them. Of a proxy whose rules are not there (yet) it is where nft's would be.
 */
function ownPriority({ iptables, ownHooks }: HostSurvey, { answersItself }: KnownProxy): number {
  if (answersItself) return Infinity;
  const own = ownHooks.filter(({ type, hook }) => type === "nat" && hook === "prerouting").map(({ priority }) => priority);
  const isInIptables = iptables.some(({ table, names }) => table === "nat" && names.includes(KUBE_SERVICES));
  return own.length > 0 ? Math.min(...own) : isInIptables ? DSTNAT : DSTNAT - 1;
}

/** Who translates a packet first has it: what comes after never sees it. CVE-2019-9946, docs/security.md. */
function translatesFirst(survey: HostSurvey, proxy: KnownProxy): readonly Finding[] {
  const ours = ownPriority(survey, proxy);
  const found = survey.external.flatMap((table) =>
    [...table.chains.values()].flatMap((chain) => {
      const { hook, name, rules } = chain;
      if (hook?.type !== "nat" || hook.at !== "prerouting" || hook.priority > ours) return [];
      const services = rules.findIndex((rule) => nextOf(rule) === KUBE_SERVICES);
      const before = { ...chain, rules: rules.slice(0, services < 0 ? undefined : services) };
      const first = familiesIn(table).flatMap((family) => translatingRules(table, before, newPacket(family)));
      if (first.length === 0) return [];
      if (table.tool === "nft") return [`chain ${table.place} ${name} (priority ${hook.priority})`];
      return [`${programOf(table)} nat ${name}: ${[...new Set(first.map((rule) => nextOf(rule) ?? "a rule"))].join(", ")}`];
    }),
  );
  if (found.length === 0) return [];
  return [
    {
      id: "translates-first",
      severity: "risk",
      what: "another program translates packets before Turnout: a node port or address that it wants too is served by it (CVE-2019-9946)",
      because: found.slice(0, NAMED_MAX).join("; "),
      fix: `give host ports and published ports of containers other numbers than node ports; portmap since 0.7.5 puts its rules behind others, and an nft chain at dstnat (${DSTNAT}) comes behind Turnout's nft chains`,
    },
  ];
}

/** The chain that a rule leads to. */
function nextOf({ actions }: ExternalRule): string | undefined {
  return actions.flatMap((action) => ("chain" in action ? [action.chain] : []))[0];
}

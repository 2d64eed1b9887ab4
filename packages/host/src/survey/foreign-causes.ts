import type { AskedPacket, Cause, FateEndpoint } from "@turnout/core";
import { isProxyChain } from "./foreign-tables.ts";
import { playChain } from "./rules/play.ts";
import type { Played } from "./rules/play.ts";
import type { ForeignChain, ForeignTable, HookedPacket } from "./rules/rule.ts";

/** A packet's way over this host, as rules of others see it. */
export interface HookedWay {
  readonly packet: AskedPacket;
  readonly endpoint: FateEndpoint;
  /** The device it leaves by; "" where it ends here. */
  readonly outDevice: string;
  /** The device that answers leave by. */
  readonly backDevice: string;
  /** A Service translates it; false: it goes on as it is. */
  readonly isTranslated: boolean;
  /** The mark that asks for masquerade; 0: the backend uses none. */
  readonly markBit: number;
  readonly isLocal: (address: string) => boolean;
  readonly isInSet: HookedPacket["isInSet"];
}

/** Where our nat chains are called in. */
const TRANSLATED_AT = -100;
const MASQUERADED_AT = 100;

/** A hook, and a packet there. */
interface Passage {
  readonly at: string;
  readonly packet: HookedPacket;
  readonly isAnswer: boolean;
  readonly fits?: (priority: number) => boolean;
}

/** Say what rules of others do to a packet on its way, or to the answer. Pure. */
export function foreignCauses(tables: readonly ForeignTable[], way: HookedWay): readonly Cause[] {
  const causes: Cause[] = [];
  let { mark } = firstPacket(way);
  for (const passage of passagesOf(way)) {
    for (const { table, chain } of chainsAt(tables, passage)) {
      const marked =
        way.markBit !== 0 && !passage.isAnswer && chain.hook !== undefined
          ? wantedMark(way, passage, chain.hook.priority, mark)
          : passage.packet.mark;
      const played = playChain(table, chain, { ...passage.packet, mark: marked }, isProxyChain);
      if (!passage.isAnswer) mark = played.mark;
      causes.push(...causesOf(table, passage, played, way, chain));
      if (played.is !== "pass") break;
    }
  }
  const lost = markCause(tables, way);
  return lost === undefined ? causes : [...causes, lost];
}

/** Our own chains ask for masquerade between the hooks of translation. */
function wantedMark({ endpoint, markBit, isTranslated }: HookedWay, { at }: Passage, priority: number, mark: number): number {
  const isAfter = (at !== "prerouting" && at !== "output") || priority > TRANSLATED_AT;
  return isTranslated && endpoint.masquerade && isAfter ? (mark | markBit) >>> 0 : mark;
}

function chainsAt(
  tables: readonly ForeignTable[],
  { at, packet, fits }: Passage,
): readonly { readonly table: ForeignTable; readonly chain: ForeignChain }[] {
  const found = tables.flatMap((table) =>
    [...table.chains.values()].filter(({ hook }) => hook?.at === at).map((chain) => ({ table, chain })),
  );
  return found
    .filter(
      ({ chain: { hook } }) =>
        hook !== undefined && (fits?.(hook.priority) ?? true) && (hook.device === undefined || hook.device === packet.inDevice),
    )
    .toSorted((a, b) => (a.chain.hook?.priority ?? 0) - (b.chain.hook?.priority ?? 0));
}

function firstPacket({ packet, isLocal, isInSet }: HookedWay): HookedPacket {
  const { family, protocol, source, destination, port, device } = packet;
  return {
    family,
    protocol: protocol.toLowerCase(),
    source,
    destination,
    sourcePort: undefined,
    destinationPort: port,
    inDevice: device,
    outDevice: "",
    state: "new",
    isTranslated: false,
    mark: 0,
    isLocal,
    isInSet,
  };
}

/** The hooks that a packet and its answer come by, in order. */
function passagesOf(way: HookedWay): readonly Passage[] {
  const { packet, endpoint, outDevice, backDevice, isTranslated } = way;
  const first = firstPacket(way);
  const sent: HookedPacket = { ...first, destination: endpoint.ip, destinationPort: endpoint.port, isTranslated };
  const isFromHost = packet.device === "";
  const entry = isFromHost ? "output" : "prerouting";
  const isBefore = (priority: number): boolean => priority <= TRANSLATED_AT;
  const there: Passage[] = [
    ...(isFromHost ? [] : [{ at: "ingress", packet: first, isAnswer: false }]),
    { at: entry, packet: { ...first, outDevice: isFromHost ? outDevice : "" }, isAnswer: false, fits: isBefore },
    { at: entry, packet: { ...sent, outDevice: isFromHost ? outDevice : "" }, isAnswer: false, fits: (priority) => !isBefore(priority) },
    ...(outDevice === "" ? [{ at: "input", packet: sent, isAnswer: false }] : []),
    ...(outDevice !== "" && !isFromHost ? [{ at: "forward", packet: { ...sent, outDevice }, isAnswer: false }] : []),
    ...(outDevice === "" ? [] : [{ at: "postrouting", packet: { ...sent, inDevice: "", outDevice }, isAnswer: false }]),
  ];
  const answer: HookedPacket = {
    ...sent,
    source: endpoint.ip,
    destination: packet.source,
    sourcePort: endpoint.port,
    destinationPort: undefined,
    inDevice: outDevice,
    outDevice: "",
    state: "established",
  };
  const back: Passage[] =
    outDevice === ""
      ? [{ at: "output", packet: { ...answer, inDevice: "", outDevice: backDevice }, isAnswer: true }]
      : [
          { at: "ingress", packet: answer, isAnswer: true },
          { at: "prerouting", packet: answer, isAnswer: true },
          isFromHost
            ? { at: "input", packet: answer, isAnswer: true }
            : { at: "forward", packet: { ...answer, outDevice: backDevice }, isAnswer: true },
        ];
  return [...there, ...back, { at: "postrouting", packet: { ...answer, inDevice: "", outDevice: backDevice }, isAnswer: true }].filter(
    ({ at }) => at !== "postrouting" || backDevice !== "" || outDevice !== "",
  );
}

function causesOf(table: ForeignTable, passage: Passage, played: Played, way: HookedWay, base: ForeignChain): readonly Cause[] {
  const what = passage.isAnswer ? "the answer" : "the packet";
  const at = `${table.name}, chain ${played.chain ?? base.name}`;
  const causes: Cause[] = [];
  const isNat = base.hook?.type === "nat" && !passage.isAnswer && (passage.at === "prerouting" || passage.at === "output");
  if (played.isUntracked && !passage.isAnswer && way.isTranslated) {
    const says = `${at}${played.byChain === undefined ? "" : ""} keeps the packet from being tracked (notrack), so it can't be translated${ruleText(played.by?.text)}`;
    causes.push({
      id: "untracked",
      says,
      show: showCommand(table, played.byChain ?? base.name),
      mend: "leave the Service's addresses out of that rule, or delete it",
    });
  }
  if (isNat && played.isTranslated && way.isTranslated && (base.hook?.priority ?? 0) <= TRANSLATED_AT) {
    const says = `${at} translates the packet before the proxy does${ruleText(played.by?.text)}`;
    causes.push({
      id: "foreign_translation",
      says,
      show: showCommand(table, played.byChain ?? base.name),
      mend: "delete that rule, or leave the Service's addresses out of it",
    });
  }
  if (played.is !== "pass") causes.push(dropCause(table, played, what, passage, base));
  return causes;
}

/** Whose chains of network policies these are, by their names. */
const POLICIES: readonly (readonly [RegExp, string])[] = [
  [/^cali[-_]|calico/i, "Calico"],
  [/^CILIUM|cilium/i, "Cilium"],
  [/^KUBE-(ROUTER|NWPLCY|POD-FW)/, "kube-router"],
  [/^WEAVE-NPC/, "Weave"],
  [/^ANTREA|antrea/i, "Antrea"],
  [/kube-network-polic|kindnet|network-polic/i, "the network policy controller"],
];

/** Whose chains these are, by their names, and what lets packets of Services through. */
const OWNERS: readonly (readonly [RegExp, string, string])[] = [
  [/firewalld/i, "firewalld", "firewall-cmd --permanent --zone=trusted --add-source=<pod CIDR>; firewall-cmd --reload"],
  [/^ufw/, "ufw", "ufw default allow routed, or ufw route allow from any to <pod CIDR>"],
  [/^DOCKER/, "Docker", "iptables -I DOCKER-USER -m conntrack --ctstate DNAT -j ACCEPT"],
  [/^f2b-|fail2ban/, "fail2ban", "fail2ban-client unban <client>"],
];

function dropCause(
  table: ForeignTable,
  { is, chain = "", rule }: Played,
  what: string,
  { at, isAnswer }: Passage,
  base: ForeignChain,
): Cause {
  const verb = is === "drop" ? "drops" : "rejects";
  const names = [table.place, chain, base.name];
  const policy = POLICIES.find(([pattern]) => names.some((name) => pattern.test(name)));
  const show = showCommand(table, chain);
  const by = rule === undefined ? `the policy of ${table.name}, chain ${chain},` : `${table.name}, chain ${chain},`;
  const where = `${verb} ${what} at ${at}`;
  if (policy !== undefined) {
    const says = `a NetworkPolicy, as ${policy[1]} enforces it, ${where}: ${by} decides${ruleText(rule?.text)}`;
    return {
      id: "network_policy",
      says,
      show: `${show}; kubectl get networkpolicies -A`,
      mend: "change the NetworkPolicies of the pods' namespace so that they allow this client; or the policies of the client's own namespace (egress)",
    };
  }
  const owner = OWNERS.find(([pattern]) => names.some((name) => pattern.test(name)));
  return {
    id: "foreign_drop",
    says: `${by}${owner === undefined ? "" : ` of ${owner[1]},`} ${where}${ruleText(rule?.text)}`,
    show,
    mend: owner?.[2] ?? mendFor(table, base, isAnswer),
  };
}

function mendFor({ tool, place }: ForeignTable, { name, hook }: ForeignChain, isAnswer: boolean): string {
  const isFiltering = hook !== undefined && hook.priority > TRANSLATED_AT;
  if (tool === "nft")
    return isFiltering
      ? `let what Services translate through, before that rule: nft insert rule ${place} ${name} ct status dnat accept`
      : "delete that rule, or accept the packet before it";
  const states = isAnswer ? "ESTABLISHED,DNAT" : "DNAT";
  return isFiltering
    ? `let what Services translate through, before that rule: ${tool} -t ${place} -I ${name} -m conntrack --ctstate ${states} -j ACCEPT`
    : "delete that rule, or accept the packet before it";
}

function showCommand({ tool, place }: ForeignTable, chain: string): string {
  return tool === "nft" ? `nft -a list chain ${place} ${chain}` : `${tool} -t ${place} -S ${chain}`;
}

function ruleText(text: string | undefined): string {
  return text === undefined ? "" : ` (${text})`;
}

/** Play the marks of the whole way: what is left of our bit when masquerade is decided. */
function markCause(tables: readonly ForeignTable[], way: HookedWay): Cause | undefined {
  const { markBit, endpoint, isTranslated } = way;
  if (markBit === 0 || !isTranslated) return undefined;
  let mark = 0;
  let hasAsked = false;
  let last: { readonly table: ForeignTable; readonly played: Played } | undefined;
  for (const passage of passagesOf(way).filter(({ isAnswer }) => !isAnswer)) {
    for (const { table, chain } of chainsAt(tables, passage)) {
      const priority = chain.hook?.priority ?? 0;
      if (passage.at === "postrouting" && priority >= MASQUERADED_AT) continue;
      const isAfter = passage.packet.isTranslated;
      if (isAfter && !hasAsked && endpoint.masquerade) mark = (mark | markBit) >>> 0;
      hasAsked ||= isAfter;
      const played = playChain(table, chain, { ...passage.packet, mark }, isProxyChain);
      if (((played.mark ^ mark) & markBit) !== 0) last = { table, played };
      mark = played.mark;
    }
  }
  const isAsked = (mark & markBit) !== 0 || (!hasAsked && endpoint.masquerade);
  if (last === undefined || isAsked === endpoint.masquerade) return undefined;
  const { table, played } = last;
  const effect = endpoint.masquerade
    ? "so the source stays the client's, and the answer may not come back by this node"
    : "so the source is rewritten, and the endpoint does not see the client";
  const bit = `0x${markBit.toString(16)}`;
  const says = `${table.name}, chain ${played.byChain ?? ""}, changes the mark bit ${bit} that asks for masquerade, ${effect}${ruleText(played.by?.text)}`;
  return {
    id: "mark_bit",
    says,
    show: showCommand(table, played.byChain ?? ""),
    mend: `have that rule leave the bit alone (mask ${bit}), or give the proxy another one: --iptables-masquerade-bit`,
  };
}

import type { Cause, UnjudgedRule } from "@turnout/core";
import { calledAt, DSTNAT } from "@turnout/host/nft";
import type { Unconfirmed, RunResult, ExternalChain, ExternalRule, ExternalTable, HookedPacket } from "@turnout/host/rules";

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
const OWNERS: readonly (readonly [RegExp, owner: string, fix: string, ...commands: readonly string[]])[] = [
  [
    /firewalld/i,
    "firewalld",
    "have firewalld trust the pods' addresses (their range in place of POD-CIDR)",
    "firewall-cmd --permanent --zone=trusted --add-source=POD-CIDR",
    "firewall-cmd --reload",
  ],
  [/^ufw/, "ufw", "let ufw route packets to the pods (their range in place of POD-CIDR)", "ufw route allow from any to POD-CIDR"],
  [/^f2b-|fail2ban/, "fail2ban", "have fail2ban let the client in", "fail2ban-client unban CLIENT"],
];

/** Docker leaves this chain to others, and calls it before its own. */
const DOCKERS = "DOCKER-USER";

/** Where a packet, or its answer, was played. */
export interface RunAt {
  readonly at: string;
  readonly isAnswer: boolean;
  readonly packet: HookedPacket;
  /** A hook of bridges. */
  readonly layer?: "bridge";
  /** A client's socket on this node was translated, so the packet is for the endpoint itself. */
  readonly isBySocket?: boolean;
}

/**
 * Say that rules of others drop or reject. Pure.
 *
 * Edges: it is a guess where a rule before that might have let the packet through.
 */
export function dropCause(
  table: ExternalTable,
  { is, chain = "", rule, unconfirmed }: RunResult,
  passage: RunAt,
  base: ExternalChain,
): Cause {
  const { isAnswer, layer } = passage;
  const at = hookText(passage);
  const names = [table.place, chain, base.name];
  const policy = POLICIES.find(([pattern]) => names.some((name) => pattern.test(name)));
  const show = [showCommand(table, chain)];
  const by = rule === undefined ? `the policy of ${table.name}, chain ${chain},` : `${table.name}, chain ${chain},`;
  const where = `${is === "drop" ? "drops" : "rejects"} ${isAnswer ? "the answer" : "the packet"} at ${at}`;
  const exception = unconfirmed.find(({ may }) => may === "pass");
  const unless = exception === undefined ? "" : `, unless this rule lets it through, which can't be judged: ${exception.rule.text}`;
  const sure = exception === undefined ? {} : ({ isSure: false } as const);
  if (policy !== undefined) {
    const says = `a NetworkPolicy, as ${policy[1]} enforces it, ${where}: ${by} decides${ruleText(rule?.text)}${unless}`;
    return {
      id: "network_policy",
      says,
      show: [...show, "kubectl get networkpolicies -A"],
      fix: "change the NetworkPolicies of the pods' namespace so that they allow this client; or the policies of the client's own namespace (egress)",
      ...sure,
    };
  }
  const isDockers = chain.startsWith("DOCKER");
  const [, named, fix, ...commands] = OWNERS.find(([pattern]) => names.some((name) => pattern.test(name))) ?? [];
  const owner = isDockers ? "Docker" : named;
  const insertAt = isDockers && passage.at === "forward" && layer === undefined ? { ...base, name: DOCKERS } : base;
  return {
    id: "external_drop",
    says: `${by}${owner === undefined ? "" : ` of ${owner},`} ${where}${ruleText(rule?.text)}${unless}`,
    show,
    ...(fix === undefined ? fixFor(table, insertAt, rule, passage) : { fix, commands: commands.map((one) => forClient(one, passage)) }),
    // Its owner would write the rule again.
    ...(owner === undefined ? orDelete(rule) : {}),
    ...sure,
  };
}

function forClient(command: string, { packet, isAnswer }: RunAt): string {
  return command.replace("CLIENT", (isAnswer ? packet.destination : packet.source) ?? "CLIENT");
}

function hookText({ at, layer }: RunAt): string {
  return layer === undefined ? at : `${at} of the bridge`;
}

/** Name a rule that may drop or reject, for all that can be told. Pure. */
export function unjudgedRule(table: ExternalTable, { chain, rule, may }: Unconfirmed, passage: RunAt): UnjudgedRule {
  const what = passage.isAnswer ? "answers" : "packets";
  return {
    says: `${table.name}, chain ${chain}, may ${may} some ${what} at ${hookText(passage)}`,
    rule: rule.text,
    show: showCommand(table, chain),
  };
}

function fixFor(
  table: ExternalTable,
  chain: ExternalChain,
  rule: ExternalRule | undefined,
  { at, isAnswer, packet, layer, isBySocket = false }: RunAt,
): Pick<Cause, "fix" | "commands"> {
  const isFiltering =
    layer === undefined && at !== "ingress" && at !== "egress" && chain.hook !== undefined && calledAt(at, chain.hook) > DSTNAT;
  if (!isFiltering)
    return rule === undefined
      ? { fix: "accept the packet in that chain, or give it the policy accept" }
      : { fix: "accept the packet before that rule" };
  const before = rule === undefined ? "in that chain" : "before that rule";
  if (isBySocket)
    return {
      fix: `${at === "forward" ? "pods on this node connect" : "programs of this node connect"} to the endpoint directly: accept ${at === "forward" ? "it and its answers" : isAnswer ? "its answers" : "it"} by address, ${before}`,
      commands: acceptCommands(table, chain.name, { at, isAnswer, packet }),
    };
  if (!packet.isTranslated)
    return {
      fix: `let ${isAnswer ? "what it answers" : at === "forward" ? "such packets, and their answers," : "such packets"} through ${before}`,
      commands: acceptCommands(table, chain.name, { at, isAnswer, packet }),
    };
  const { tool, place } = table;
  const command =
    tool === "nft"
      ? `nft insert rule ${place} ${chain.name} ct status dnat accept`
      : `${tool} -t ${place} -I ${chain.name} -m conntrack --ctstate DNAT -j ACCEPT`;
  return {
    fix: `unless this client is meant to be kept out, accept all that Services translate, of every client, ${before}`,
    commands: [command],
  };
}

/** Have a rule deleted in place of what mends it otherwise. Pure. */
export function orDelete(rule: ExternalRule | undefined): Pick<Cause, "instead"> {
  return rule === undefined ? {} : { instead: { fix: "if nobody needs the rule, delete it", commands: [rule.deletion] } };
}

/** Accept packets that nothing on this node translates: the one asked for, and where both come by the answers to it. */
function acceptCommands({ tool, place }: ExternalTable, chain: string, { at, isAnswer, packet }: RunAt): readonly string[] {
  const { family, protocol } = packet;
  const [ip, port] = isAnswer ? [packet.source, packet.sourcePort] : [packet.destination, packet.destinationPort];
  const accepting = (side: "to" | "from"): string => {
    const isTo = side === "to";
    return tool === "nft"
      ? `nft insert rule ${place} ${chain} ${family === "IPv4" ? "ip" : "ip6"} ${isTo ? "daddr" : "saddr"} ${ip} ${protocol} ${isTo ? "dport" : "sport"} ${port} accept`
      : `${tool} -t ${place} -I ${chain} ${isTo ? "-d" : "-s"} ${ip} -p ${protocol} ${isTo ? "--dport" : "--sport"} ${port} -j ACCEPT`;
  };
  if (at === "forward") return [accepting("to"), accepting("from")];
  return [accepting(isAnswer ? "from" : "to")];
}

/** The command that shows a chain. Pure. */
export function showCommand({ tool, place }: ExternalTable, chain: string): string {
  return tool === "nft" ? `nft -a list chain ${place} ${chain}` : `${tool} -t ${place} -S ${chain}`;
}

/** A rule as an addition to a sentence. Pure. */
export function ruleText(text: string | undefined): string {
  return text === undefined ? "" : ` (${text})`;
}

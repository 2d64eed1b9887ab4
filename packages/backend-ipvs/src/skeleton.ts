import { comment, jumpObjects, MARKER_CHAIN, markBit, ruleText, sourcePart, WORDS } from "@turnout/host/iptables/text";
import { LOOPBACK_ADDRESS, namesLoopback } from "@turnout/core/backend";
import type { Context, IPFamily, NodeContext } from "@turnout/core/backend";
import type { ChainObject, SharedObject, SourcePart } from "@turnout/host/iptables/text";
import { CANARY, JUMPS, parametersOf, SHARED_CHAINS, TO_CLUSTER, TO_LOCAL } from "./layout.ts";
import { SET_BASES, setName } from "./names.ts";
import type { SetBase } from "./names.ts";
import type { IpvsObject, SysctlObject, TimeoutObject } from "./objects.ts";
import type { IpvsFacts, IpvsOptions } from "./options.ts";
import { setObject } from "./sets.ts";
import type { IpvsWorld } from "./world.ts";

const NEW = "-m conntrack --ctstate NEW";
const FROM_HOST = "-m addrtype --src-type LOCAL";
const TO_HOST = "-m addrtype --dst-type LOCAL";
const ADDRESS_AND_PORT = "dst,dst";

/** What the skeleton is made for. */
export interface SkeletonParts {
  readonly options: Pick<IpvsOptions, "strictARP" | "timeouts">;
  readonly world: Pick<IpvsWorld, "losesReusedPorts">;
}

/** Say what exists whatever the services are: sets, chains that look into them, jumps, kernel parameters. IPVS has one set of these for both families; each sees to it. */
export function renderSkeleton(
  { node }: Context<IpvsFacts>,
  { options, world: { losesReusedPorts } }: SkeletonParts,
): readonly IpvsObject[] {
  const { family } = node;
  const sets = SET_BASES.map((base) => setObject(base, family));
  const translations = SHARED_CHAINS.nat.map((name): SharedObject => ({ kind: "shared", key: `nat ${name}`, value: "" }));
  return [
    ...sets,
    ...natChains(node),
    ...translations,
    ...filterChains(node),
    ...mangleChains(family),
    ...jumpObjects(JUMPS),
    ...Object.entries(parametersOf(family, options.strictARP, losesReusedPorts)).map(([key, value]): SysctlObject => ({
      kind: "sysctl",
      key,
      value,
    })),
    ...timeouts(options),
  ];
}

function timeouts({ timeouts: wanted }: Pick<IpvsOptions, "timeouts">): readonly TimeoutObject[] {
  return (["tcp", "tcpFin", "udp"] as const).flatMap((key) => (wanted[key] === 0 ? [] : [{ kind: "timeout", key, value: wanted[key] }]));
}

function chain(key: string, rules: readonly (string | undefined)[]): ChainObject {
  return { kind: "chain", key, value: rules.filter((rule) => rule !== undefined).join("\n") };
}

/** Match on a set, e.g. `-m set --match-set KUBE-CLUSTER-IP dst,dst`. */
function inSet(base: SetBase, family: IPFamily, directions: string = ADDRESS_AND_PORT): string {
  return `-m set --match-set ${setName(base, family)} ${directions}`;
}

function notInSet(base: SetBase, family: IPFamily, directions: string): string {
  return `-m set ! --match-set ${setName(base, family)} ${directions}`;
}

/** A rule about pods, or (`isPod` false) about all others; undefined where there is nobody whom it is about. */
function aboutPods({ detector }: NodeContext, isPod: boolean, matches: readonly string[], target?: string): string | undefined {
  const source: SourcePart | undefined | "none" = detector === undefined ? "none" : sourcePart(detector, isPod);
  return source === "none" ? undefined : ruleText({ source, matches, ...(target === undefined ? {} : { target }) });
}

/** What is masqueraded, and what is translated to a virtual server with another pool. */
function natChains(node: NodeContext): readonly ChainObject[] {
  const { family, settings } = node;
  const mark = markBit(settings.masqueradeBit);
  const bit = mark.slice(0, mark.indexOf("/"));
  const marked = (...matches: readonly string[]): string => ruleText({ matches, target: "KUBE-MARK-MASQ" });
  const accepted = (base: SetBase): string => ruleText({ matches: [inSet(base, family)], target: "ACCEPT" });
  return [
    chain("nat KUBE-SERVICES", [
      ruleText({ source: { by: "source", text: `-s ${WORDS[family].loopback}` }, target: "RETURN" }),
      // Who is outside of the ranges stays where it is, for the firewall.
      ruleText({ matches: isOutside(family), target: "RETURN" }),
      ruleText({ matches: [inSet("TURNOUT-LOCAL", family)], target: "TURNOUT-LOCAL" }),
      ruleText({ matches: [comment("Kubernetes service lb portal"), inSet("KUBE-LOAD-BALANCER", family)], target: "KUBE-LOAD-BALANCER" }),
      clusterIPMark(node),
      marked(comment("Kubernetes service external ip + port for masquerade and filter purpose"), inSet("KUBE-EXTERNAL-IP", family)),
      ruleText({ matches: [inSet("TURNOUT-OWN", family)], target: TO_CLUSTER }),
      // Before node ports: the number of one may be the port of another Service here.
      ...(["KUBE-CLUSTER-IP", "KUBE-LOAD-BALANCER", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"] as const).map(accepted),
      ruleText({ matches: [TO_HOST], target: "KUBE-NODE-PORT" }),
    ]),
    chain("nat KUBE-LOAD-BALANCER", [ruleText({ matches: [inSet("KUBE-LOAD-BALANCER-LOCAL", family)], target: "RETURN" }), marked()]),
    chain("nat KUBE-NODE-PORT", nodePortMarks(family)),
    chain("nat TURNOUT-LOCAL", localPolicy(node)),
    chain("nat KUBE-MARK-MASQ", [`-j MARK --set-xmark ${mark}`]),
    chain("nat KUBE-POSTROUTING", [
      `-m mark ! --mark ${mark} ${comment("Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose")} ${inSet("KUBE-LOOP-BACK", family, "dst,dst,src")} -j MASQUERADE`,
      `-m mark ! --mark ${mark} -j RETURN`,
      // Cleared first, so that a packet that comes by again is not masqueraded twice; other bits stay.
      `-j MARK --set-xmark ${bit}/0x0`,
      `${comment("kubernetes service traffic requiring SNAT")} -j MASQUERADE --random-fully`,
    ]),
    chain(`nat ${MARKER_CHAIN}`, []),
    chain(`nat ${CANARY}`, []),
  ];
}

/** Who is masqueraded on the way to a cluster IP. */
function clusterIPMark(node: NodeContext): string | undefined {
  const { family, detector, settings } = node;
  const why = comment("Kubernetes service cluster ip + port for masquerade purpose");
  const matches = [why, inSet("KUBE-CLUSTER-IP", family)];
  if (settings.masqueradeAll) return ruleText({ matches, target: "KUBE-MARK-MASQ" });
  if (detector !== undefined) return aboutPods(node, false, matches, "KUBE-MARK-MASQ");
  // The host takes the cluster IP, which it has bound, as its own address, and no endpoint elsewhere could answer that.
  return ruleText({ matches: [why, inSet("KUBE-CLUSTER-IP", family, "src,dst")], target: "KUBE-MARK-MASQ" });
}

function nodePortMarks(family: IPFamily): readonly string[] {
  const sets = [
    ["tcp", "KUBE-NODE-PORT-LOCAL-TCP", "KUBE-NODE-PORT-TCP", "dst"],
    ["udp", "KUBE-NODE-PORT-LOCAL-UDP", "KUBE-NODE-PORT-UDP", "dst"],
    ["sctp", "KUBE-NODE-PORT-LOCAL-SCTP-HASH", "KUBE-NODE-PORT-SCTP-HASH", ADDRESS_AND_PORT],
  ] as const;
  return sets.flatMap(([protocol, local, all, directions]) => [
    ruleText({ protocol, matches: [inSet(local, family, directions)], target: "RETURN" }),
    ruleText({ protocol, matches: [inSet(all, family, directions)], target: "KUBE-MARK-MASQ" }),
  ]);
}

function isOutside(family: IPFamily): readonly string[] {
  return [
    inSet("KUBE-LOAD-BALANCER-FW", family),
    notInSet("KUBE-LOAD-BALANCER-SOURCE-CIDR", family, "dst,dst,src"),
    notInSet("KUBE-LOAD-BALANCER-SOURCE-IP", family, "dst,dst,src"),
  ];
}

/** The Local policy of external traffic: pods and the host itself use all endpoints, and whether it is a pod is asked first. */
function localPolicy(node: NodeContext): readonly (string | undefined)[] {
  const own = inSet("TURNOUT-OWN", node.family);
  return [
    aboutPods(node, true, [own], TO_CLUSTER),
    aboutPods(node, true, [], "ACCEPT"),
    ruleText({ matches: [FROM_HOST], target: "KUBE-MARK-MASQ" }),
    ruleText({ matches: [FROM_HOST, own], target: TO_CLUSTER }),
    ruleText({ matches: [FROM_HOST], target: "ACCEPT" }),
    ruleText({ target: TO_LOCAL }),
    // No endpoint here: the filter drops it.
    ruleText({ target: "ACCEPT" }),
  ];
}

/** What is refused and dropped. IPVS comes behind the filter table's INPUT. */
function filterChains(node: NodeContext): readonly ChainObject[] {
  const { family, settings } = node;
  const mark = markBit(settings.masqueradeBit);
  const returned = (matches: string): string => ruleText({ matches: [matches], target: "RETURN" });
  return [
    chain("filter KUBE-FORWARD", [
      `${comment("kubernetes forwarding rules")} -m mark --mark ${mark} -j ACCEPT`,
      `${comment("kubernetes forwarding conntrack rule")} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ]),
    chain("filter KUBE-NODE-PORT", [
      ruleText({
        protocol: "tcp",
        matches: [comment("Kubernetes health check node port"), inSet("KUBE-HEALTH-CHECK-NODE-PORT", family, "dst")],
        target: "ACCEPT",
      }),
    ]),
    ...firewall("filter KUBE-PROXY-FIREWALL", "filter KUBE-SOURCE-RANGES-FIREWALL", family),
    chain("filter TURNOUT-LOCAL-ONLY", [
      aboutPods(node, true, [], "RETURN"),
      ruleText({ matches: [FROM_HOST], target: "RETURN" }),
      ruleText({ target: "DROP" }),
    ]),
    chain("filter KUBE-IPVS-FILTER", [
      ...refusedOnLoopback(node),
      ruleText({ matches: [NEW, inSet("TURNOUT-DROP", family)], target: "DROP" }),
      ruleText({ matches: [NEW, inSet("TURNOUT-NO-LOCAL", family)], target: "TURNOUT-LOCAL-ONLY" }),
      ...(["KUBE-LOAD-BALANCER", "KUBE-CLUSTER-IP", "KUBE-EXTERNAL-IP", "KUBE-EXTERNAL-IP-LOCAL"] as const).map((base) =>
        returned(inSet(base, family)),
      ),
      returned(inSet("KUBE-HEALTH-CHECK-NODE-PORT", family, "dst")),
      returned(`-m conntrack --ctstate DNAT ${inSet("TURNOUT-INTERNAL", family)}`),
      // The addresses are on this host, so what listens on all of them would answer.
      ruleText({ matches: [NEW, inSet("KUBE-IPVS-IPS", family, "dst")], target: `REJECT --reject-with ${WORDS[family].refusal}` }),
    ]),
    chain(`filter ${CANARY}`, []),
  ];
}

/** Node ports of UDP and SCTP where loopback is named: the process answers TCP there (R-38). The rules' counters count. */
function refusedOnLoopback({ family, settings }: NodeContext): readonly string[] {
  if (!namesLoopback(settings, family)) return [];
  const { hostBits, refusal } = WORDS[family];
  const target = `REJECT --reject-with ${refusal}`;
  const refused = (protocol: "udp" | "sctp", members: string): string =>
    ruleText({ destination: `-d ${LOOPBACK_ADDRESS[family]}/${hostBits}`, protocol, matches: [NEW, members], target });
  return [refused("udp", inSet("KUBE-NODE-PORT-UDP", family, "dst")), refused("sctp", inSet("KUBE-NODE-PORT-SCTP-HASH", family))];
}

/** The host's own packets go through IPVS before the filter table's OUTPUT, so that comes too late. */
function mangleChains(family: IPFamily): readonly ChainObject[] {
  const [entry, ...others] = firewall("mangle KUBE-IPVS-OUT-FILTER", "mangle KUBE-SOURCE-RANGES-FIREWALL", family);
  // Translated packets come by before they are translated.
  const internal = ruleText({ matches: [inSet("TURNOUT-INTERNAL", family)], target: "DROP" });
  const dropped = ruleText({ matches: [NEW, inSet("TURNOUT-DROP", family)], target: "DROP" });
  return [...(entry === undefined ? [] : [chain(entry.key, [internal, dropped, entry.value])]), ...others, chain(`mangle ${CANARY}`, [])];
}

function firewall(from: string, to: string, family: IPFamily): readonly ChainObject[] {
  return [
    chain(from, [
      ruleText({
        matches: [
          comment("Kubernetes service load balancer ip + port for load balancer with sourceRange"),
          inSet("KUBE-LOAD-BALANCER-FW", family),
        ],
        target: to.slice(to.indexOf(" ") + 1),
      }),
    ]),
    chain(to, [
      ruleText({ matches: [inSet("KUBE-LOAD-BALANCER-SOURCE-CIDR", family, "dst,dst,src")], target: "RETURN" }),
      ruleText({ matches: [inSet("KUBE-LOAD-BALANCER-SOURCE-IP", family, "dst,dst,src")], target: "RETURN" }),
      ruleText({ target: "DROP" }),
    ]),
  ];
}

import { nodePortAddresses, unusableReason } from "@turnout/core/backend";
import type { Context, NodeContext } from "@turnout/core/backend";
import { comment, jumpObjects, MARKER_CHAIN, markBit, ruleText, toAddress, WORDS } from "@turnout/host/iptables/text";
import type { ChainObject, SharedObject, TableName } from "@turnout/host/iptables/text";
import { CANARY, GUARD_CHAIN, GUARD_JUMPS, GUARD_RULE, JUMPS, ROUTE_LOCALNET, SHARED_CHAINS } from "./layout.ts";
import { counted, COUNTERS } from "./counters.ts";
import type { IptablesObject } from "./objects.ts";
import type { IptablesFacts, IptablesOptions } from "./options.ts";

const LAST = comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain");
const TO_NODE_PORTS = "KUBE-NODEPORTS";

/** Say what exists whatever the services are. */
export function renderSkeleton(
  { node, host }: Context<IptablesFacts>,
  options: Pick<IptablesOptions, "localhostNodePorts">,
): readonly IptablesObject[] {
  const isLocalhost = answersOnLoopback(node, options);
  const shared = (Object.keys(SHARED_CHAINS) as TableName[]).flatMap((table) =>
    SHARED_CHAINS[table].map((name): SharedObject => {
      const tail = table === "nat" && name === "KUBE-SERVICES" ? nodePortTail(node, host, isLocalhost) : [];
      return { kind: "shared", key: `${table} ${name}`, value: tail.join("\n") };
    }),
  );
  return [
    ...fixedChains(node, host),
    ...shared,
    ...guard(node, options),
    ...jumpObjects(JUMPS),
    ...localhostParameters(isLocalhost),
    ...counters(host),
  ];
}

function fixedChains({ settings }: NodeContext, { isTcpLiberal, canCount }: IptablesFacts): readonly ChainObject[] {
  const mark = markBit(settings.masqueradeBit);
  const bit = mark.slice(0, mark.indexOf("/"));
  const chain = (key: string, ...rules: readonly string[]): ChainObject => ({ kind: "chain", key, value: rules.join("\n") });
  return [
    chain(
      "nat KUBE-POSTROUTING",
      `-m mark ! --mark ${mark} -j RETURN`,
      // Cleared first, so that a packet that comes by again is not masqueraded twice; other bits stay.
      `-j MARK --set-xmark ${bit}/0x0`,
      `${comment("kubernetes service traffic requiring SNAT")} -j MASQUERADE --random-fully`,
    ),
    chain("nat KUBE-MARK-MASQ", `-j MARK --set-xmark ${mark}`),
    chain(
      "filter KUBE-FORWARD",
      // Else a packet outside of its window is forwarded untranslated, and whoever gets it resets the connection (k/k#74839).
      ...(isTcpLiberal ? [] : [`-m conntrack --ctstate INVALID ${canCount ? `${counted("invalid")} ` : ""}-j DROP`]),
      `${comment("kubernetes forwarding rules")} -m mark --mark ${mark} -j ACCEPT`,
      `${comment("kubernetes forwarding conntrack rule")} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ),
    chain(`nat ${MARKER_CHAIN}`),
    ...(["filter", "nat", "mangle"] as const).map((table) => chain(`${table} ${CANARY}`)),
  ];
}

/** The rules that send what no other rule took to the node ports. @source kube-proxy pkg/proxy/iptables/proxier.go syncProxyRules */
function nodePortTail(node: NodeContext, host: IptablesFacts, isLocalhost: boolean): readonly string[] {
  const { family } = node;
  const chosen = answering(node, host.addresses[family]);
  if (chosen === "all") {
    const except = isLocalhost ? {} : { destination: `! -d ${WORDS[family].loopback}` };
    return [ruleText({ ...except, matches: [LAST, "-m addrtype --dst-type LOCAL"], target: TO_NODE_PORTS })];
  }
  return chosen
    .filter((ip) => isLocalhost || unusableReason(ip) !== "loopback")
    .map((ip) => ruleText({ destination: toAddress(ip, family), matches: [LAST], target: TO_NODE_PORTS }));
}

/** Tell whether node ports answer on 127.0.0.1: asked for, and held by the node-port addresses. The kernel can't do it for IPv6. */
export function answersOnLoopback(node: NodeContext, { localhostNodePorts }: Pick<IptablesOptions, "localhostNodePorts">): boolean {
  return localhostNodePorts && node.family === "IPv4" && answering(node, ["127.0.0.1"]).length > 0;
}

function answering({ family, addresses, settings }: NodeContext, hostAddresses: readonly string[]): "all" | readonly string[] {
  return nodePortAddresses({ wanted: settings.nodePortAddresses ?? [], family, primary: addresses[0], hostAddresses });
}

/** The guard is wanted wherever localhost node ports may come to be: it harms nobody, and kubelet has it anyway. */
function guard({ family }: NodeContext, { localhostNodePorts }: Pick<IptablesOptions, "localhostNodePorts">): readonly IptablesObject[] {
  if (family !== "IPv4" || !localhostNodePorts) return [];
  const keys = [
    `filter ${GUARD_CHAIN}`,
    `filter ${GUARD_CHAIN} ${GUARD_RULE}`,
    ...GUARD_JUMPS.map((from) => `filter ${from} -j ${GUARD_CHAIN}`),
  ];
  return keys.map((key) => ({ kind: "guard", key, value: true }));
}

/** Both are wanted wherever there are any, as in kube-proxy: their metrics are 0 then, and not absent. */
function counters({ canCount }: IptablesFacts): readonly IptablesObject[] {
  return canCount ? Object.values(COUNTERS).map((key) => ({ kind: "counter", key, value: true })) : [];
}

function localhostParameters(isLocalhost: boolean): readonly IptablesObject[] {
  return isLocalhost ? [{ kind: "sysctl", key: ROUTE_LOCALNET, value: "1" }] : [];
}

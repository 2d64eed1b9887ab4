import { printableName } from "@turnout/core";
import { hostPort } from "@turnout/core/backend";
import type { Context, Destination, Endpoint, NodeContext, Rule, ServicePort, Target } from "@turnout/core/backend";
import { comment, fromRange, oneOf, sourcePart, ruleText, toAddress, toPort, WORDS } from "@turnout/host/iptables/text";
import { endpointChain, serviceChain } from "./names.ts";
import type { ServiceChainPrefix } from "./names.ts";
import { counted } from "./counters.ts";
import { answersOnLoopback } from "./skeleton.ts";
import type { IptablesObject } from "./objects.ts";
import type { IptablesFacts, IptablesOptions } from "./options.ts";

const MARK_MASQ = "KUBE-MARK-MASQ";
const FROM_HOST = "-m addrtype --src-type LOCAL";
const TO_HOST = "-m addrtype --dst-type LOCAL";

/** What the parts of one row are written with. */
interface RowWords {
  readonly row: ServicePort;
  readonly node: NodeContext;
  /** `shop/cart:http` */
  readonly name: string;
  readonly protocol: string;
  readonly withEndpointComments: boolean;
  /** Packets to node ports on 127.0.0.1 are counted. */
  readonly countsLoopback: boolean;
}

/**
 * Say what one row needs: kube-proxy's chains, with its names, comments and order of rules.
 *
 * Shape: dispatch rules in the shared chains; KUBE-SVC and KUBE-SVL pick an endpoint of the cluster or local pool, KUBE-EXT decides about
 * external traffic, KUBE-FW about sources, KUBE-SEP translates.
 * @source kube-proxy pkg/proxy/iptables/proxier.go syncProxyRules
 */
export function renderRow(
  row: ServicePort,
  context: Context<IptablesFacts>,
  { endpointComments, localhostNodePorts }: Pick<IptablesOptions, "endpointComments" | "localhostNodePorts">,
): readonly IptablesObject[] {
  const { node, host } = context;
  const words: RowWords = {
    row,
    node,
    name: printableName(row.name),
    protocol: row.name.protocol.toLowerCase(),
    withEndpointComments: endpointComments === "auto" ? context.hasManyEndpoints !== true : endpointComments,
    countsLoopback: host.canCount && answersOnLoopback(node, { localhostNodePorts }),
  };
  const objects: IptablesObject[] = [];
  for (const destination of row.destinations) objects.push(...dispatch(words, destination));
  const external = row.destinations.find(({ kind }) => kind !== "clusterIP");
  const ranged = row.destinations.find(({ sourceRanges }) => sourceRanges !== undefined);
  if (external !== undefined && isServed(external)) objects.push(externalChain(words, policyOf(external)));
  if (ranged !== undefined && isServed(ranged)) objects.push(firewallChain(words, ranged.sourceRanges ?? []));
  objects.push(...poolChains(words));
  if (row.healthCheck !== undefined) objects.push(healthCheckRule(words, row.healthCheck.port));
  return objects;
}

function chain(name: string, rules: readonly string[]): IptablesObject {
  return { kind: "chain", key: `nat ${name}`, value: rules.join("\n") };
}

function rule(where: string, text: string): IptablesObject {
  return { kind: "rule", key: `${where} ${text}`, value: 1 };
}

/** The rules that decide among allowed sources; who isn't allowed is kept out by the firewall chain. */
function policyOf({ rules }: Destination): readonly Rule[] {
  return rules.filter(({ from }) => from !== "outsideSourceRanges");
}

/** Tell whether anybody gets through to an endpoint. */
function isServed(destination: Destination): boolean {
  return policyOf(destination).some(({ to }) => isPool(to));
}

function isPool(to: Target): to is "cluster" | "local" {
  return to === "cluster" || to === "local";
}

function poolChain({ row }: RowWords, pool: "cluster" | "local"): string {
  return serviceChain(pool === "cluster" ? "KUBE-SVC-" : "KUBE-SVL-", row.name);
}

/** The rules that lead to a destination's chain, refuse or drop its packets. */
function dispatch(words: RowWords, destination: Destination): readonly IptablesObject[] {
  const objects: IptablesObject[] = [];
  const { row, name, protocol } = words;
  const { kind, sourceRanges } = destination;
  const last = destination.rules.at(-1)?.to ?? "drop";
  const own = (prefix: ServiceChainPrefix): string => serviceChain(prefix, row.name);
  if (kind === "clusterIP") {
    if (isPool(last)) objects.push(rule("nat KUBE-SERVICES", destinationRule(words, destination, "cluster IP", poolChain(words, last))));
  } else if (isServed(destination)) {
    const target = sourceRanges === undefined ? own("KUBE-EXT-") : own("KUBE-FW-");
    if (kind === "nodePort") {
      const matches = [comment(name), toPort(protocol, destination.port)];
      objects.push(rule("nat KUBE-NODEPORTS", ruleText({ protocol, matches, target })));
      if (words.countsLoopback)
        objects.push(
          rule(
            "nat KUBE-NODEPORTS",
            ruleText({
              destination: `-d ${WORDS[words.node.family].loopback}`,
              protocol,
              matches: [...matches, counted("loopback")],
              target,
            }),
          ),
        );
    } else {
      const what = kind === "externalIP" ? "external IP" : "loadbalancer IP";
      objects.push(rule("nat KUBE-SERVICES", destinationRule(words, destination, what, target)));
    }
    if (sourceRanges !== undefined) {
      const what = `traffic not accepted by ${own("KUBE-FW-")}`;
      objects.push(rule("filter KUBE-PROXY-FIREWALL", destinationRule(words, destination, what, "DROP")));
    }
  }
  if (!isPool(last)) objects.push(refusal(words, destination, last));
  return objects;
}

function destinationRule({ node, name, protocol }: RowWords, { address, port }: Destination, what: string, target: string): string {
  const matches = [comment(`${name} ${what}`), toPort(protocol, port)];
  return ruleText({ destination: toAddress(address, node.family), protocol, matches, target });
}

/** What is left untranslated still has the service's address, and is refused or dropped by it. */
function refusal(words: RowWords, destination: Destination, to: "reject" | "drop"): IptablesObject {
  const { node, name, protocol } = words;
  const what = to === "reject" ? "has no endpoints" : "has no local endpoints";
  const target = to === "reject" ? `REJECT --reject-with ${WORDS[node.family].refusal}` : "DROP";
  if (destination.kind === "nodePort") {
    const matches = [comment(`${name} ${what}`), TO_HOST, toPort(protocol, destination.port)];
    return rule("filter KUBE-EXTERNAL-SERVICES", ruleText({ protocol, matches, target }));
  }
  const where = destination.kind === "clusterIP" ? "filter KUBE-SERVICES" : "filter KUBE-EXTERNAL-SERVICES";
  return rule(where, destinationRule(words, destination, what, target));
}

/** KUBE-EXT: masquerade and short circuits, then the pool that external traffic may use. */
function externalChain(words: RowWords, rules: readonly Rule[]): IptablesObject {
  const { row, name, node } = words;
  const texts = rules.flatMap(({ from, to, masquerade }): readonly string[] => {
    const target = isPool(to) ? poolChain(words, to) : undefined;
    if (from === "localPod") {
      const origin = node.detector === undefined ? "none" : sourcePart(node.detector, true);
      if (origin === "none" || target === undefined) return [];
      return [ruleText({ source: origin, matches: [comment(`pod traffic for ${name} external destinations`)], target })];
    }
    if (from === "thisHost") {
      const mark = ruleText({
        matches: [comment(`masquerade LOCAL traffic for ${name} external destinations`), FROM_HOST],
        target: MARK_MASQ,
      });
      const route = ruleText({
        matches: [comment(`route LOCAL traffic for ${name} external destinations`), FROM_HOST],
        target: target ?? "RETURN",
      });
      return masquerade ? [mark, route] : [route];
    }
    const mark = ruleText({ matches: [comment(`masquerade traffic for ${name} external destinations`)], target: MARK_MASQ });
    return [...(masquerade ? [mark] : []), ...(target === undefined ? [] : [ruleText({ target })])];
  });
  return chain(serviceChain("KUBE-EXT-", row.name), texts);
}

/** KUBE-FW: allowed sources go on; all others fall out untranslated, and are dropped in the filter table. */
function firewallChain({ row, name }: RowWords, ranges: readonly string[]): IptablesObject {
  const target = serviceChain("KUBE-EXT-", row.name);
  const allowed = ranges.map((cidr) => ruleText({ source: fromRange(cidr), matches: [comment(`${name} loadbalancer IP`)], target }));
  return chain(serviceChain("KUBE-FW-", row.name), [
    ...allowed,
    comment(`other traffic to ${name} will be dropped by KUBE-PROXY-FIREWALL`),
  ]);
}

/** KUBE-SVC and KUBE-SVL where some rule uses their pool, and KUBE-SEP of each endpoint in either. */
function poolChains(words: RowWords): readonly IptablesObject[] {
  const { row } = words;
  const used = new Set(row.destinations.flatMap(({ rules }) => rules.map(({ to }) => to)).filter(isPool));
  const reachable = new Set<number>();
  const objects: IptablesObject[] = [];
  for (const pool of ["cluster", "local"] as const) {
    if (!used.has(pool)) continue;
    objects.push(chain(poolChain(words, pool), [...clusterIPMarks(words, pool), ...picks(words, pool)]));
    for (const index of row[pool]) reachable.add(index);
  }
  for (const index of reachable) {
    const endpoint = row.endpoints[index];
    if (endpoint !== undefined) objects.push(endpointObject(words, endpoint));
  }
  return objects;
}

/** Who asks for the cluster IP and is to be masqueraded, marked in the chain that his packets reach. */
function clusterIPMarks(words: RowWords, pool: "cluster" | "local"): readonly string[] {
  const { row, node, name, protocol } = words;
  return row.destinations.flatMap((destination) => {
    if (destination.kind !== "clusterIP") return [];
    return destination.rules.flatMap(({ from, to, masquerade }) => {
      if (!masquerade || to !== pool) return [];
      const origin = from === "offCluster" && node.detector !== undefined ? sourcePart(node.detector, false) : undefined;
      if (origin === "none") return [];
      const matches = [comment(`${name} cluster IP`), toPort(protocol, destination.port)];
      return [ruleText({ source: origin, destination: toAddress(destination.address, node.family), protocol, matches, target: MARK_MASQ })];
    });
  });
}

/** First the clients that an endpoint is remembered for, then one endpoint at random. */
function picks({ row, node, name, withEndpointComments }: RowWords, pool: "cluster" | "local"): readonly string[] {
  const endpoints = row[pool].flatMap((index) => row.endpoints[index] ?? []);
  const known: string[] = [];
  const random: string[] = [];
  for (const [index, { ip, port }] of endpoints.entries()) {
    const text = hostPort(ip, port);
    const target = endpointChain(row.name, text);
    const whose = withEndpointComments ? [comment(`${name} -> ${text}`)] : [];
    const remaining = endpoints.length - index;
    random.push(ruleText({ matches: remaining > 1 ? [...whose, oneOf(remaining)] : whose, target }));
    if (row.affinitySeconds === undefined) continue;
    const remembered = `-m recent --rcheck --seconds ${row.affinitySeconds} --reap ${recentList(target, node)}`;
    known.push(ruleText({ matches: [...whose, remembered], target }));
  }
  return [...known, ...random];
}

/** KUBE-SEP: masquerade for an endpoint that reaches itself, and the translation. */
function endpointObject({ row, node, name, protocol, withEndpointComments }: RowWords, { ip, port }: Endpoint): IptablesObject {
  const text = hostPort(ip, port);
  const own = endpointChain(row.name, text);
  const whose = withEndpointComments ? [comment(name)] : [];
  const remember = row.affinitySeconds === undefined ? [] : [`-m recent --set ${recentList(own, node)}`];
  const itself = { by: "source", text: `-s ${ip}/${WORDS[node.family].hostBits}` } as const;
  return chain(own, [
    ruleText({ source: itself, matches: whose, target: MARK_MASQ }),
    ruleText({ protocol, matches: [...whose, ...remember, `-m ${protocol}`], target: `DNAT --to-destination ${text}` }),
  ]);
}

function recentList(name: string, { family }: NodeContext): string {
  return `--name ${name} --mask ${WORDS[family].mask} --rsource`;
}

function healthCheckRule({ name }: RowWords, port: number): IptablesObject {
  const matches = [comment(`${name} health check node port`), toPort("tcp", port)];
  return rule("filter KUBE-NODEPORTS", ruleText({ protocol: "tcp", matches, target: "ACCEPT" }));
}

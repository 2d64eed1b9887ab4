import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { clusterIP, endpointsOf, NODE_NAME, POD_CIDR, SERVICE_PORT, serviceName, TARGET_PORT } from "./workload.ts";
import type { Shape, WorkEndpoint } from "./workload.ts";

/** kube-proxy's nftables rulesets: A up to 1.36, B from 1.37. @source kube-proxy pkg/proxy/nftables/proxier.go */
export type Layout = "A" | "B";

const TABLE = "ip kube-proxy";
/** In the baseline's favour: kube-proxy writes one command per element. */
const ELEMENTS_PER_COMMAND = 500;

/**
 * Write a whole ruleset as kube-proxy's nftables mode does on its first sync, as text for `nft -f`.
 *
 * Shape: cluster IPs only, detect-local by pod CIDR: what {@link serviceObject} describes.
 * Edges: elements are batched and chains not flushed first, both in the baseline's favour.
 */
export function layoutText(layout: Layout, shape: Shape): string {
  const indexes = Array.from({ length: shape.services }, (_, index) => index);
  const all = indexes.map((index) => ({ index, endpoints: endpointsOf(index, shape) }));
  // Service by service, as kube-proxy does; with all chains first the kernel takes a third longer (it walks the transaction per map).
  const services = all.flatMap(({ index, endpoints }) => [
    ...chainNames(layout, index, endpoints).map((name) => `add chain ${TABLE} ${name}`),
    ...serviceRules(layout, index, endpoints),
  ]);
  const serviceIPs = indexes.map((index) => `${clusterIP(index)} . tcp . ${SERVICE_PORT} : goto ${serviceChain(index)}`);
  const local = all.flatMap(({ endpoints }) => endpoints.filter(({ nodeName }) => nodeName === NODE_NAME));
  const hairpin = [...new Set(local.map(({ ip }) => `${ip} . ${ip} . tcp . ${TARGET_PORT}`))];
  return [
    // What is there without any Service.
    readFileSync(new URL(`kube-proxy/layout-${layout}.nft`, import.meta.url), "utf8").trimEnd(),
    ...services,
    ...elements("cluster-ips", indexes.map(clusterIP)),
    ...elements("service-ips", serviceIPs),
    ...(layout === "B" ? elements("hairpin-connections", hairpin) : []),
    "",
  ].join("\n");
}

/** Write the transaction by which kube-proxy takes one endpoint of one service away (`missing`), or brings it back. */
export function layoutChangeText(layout: Layout, index: number, shape: Shape, missing?: number): string {
  const endpoints = endpointsOf(index, shape, missing);
  const gone = missing === undefined ? undefined : endpointsOf(index, shape)[missing];
  const names = chainNames(layout, index, endpoints);
  // Chains in use are made and flushed before they are filled; one that is out of use is flushed, and deleted later.
  const flushed = [...names, ...(gone === undefined || layout === "B" ? [] : [endpointChain(index, gone)])];
  return [
    ...names.map((name) => `add chain ${TABLE} ${name}`),
    ...flushed.map((name) => `flush chain ${TABLE} ${name}`),
    ...serviceRules(layout, index, endpoints),
    "",
  ].join("\n");
}

function chainNames(layout: Layout, index: number, endpoints: readonly WorkEndpoint[]): readonly string[] {
  return [serviceChain(index), ...(layout === "A" ? endpoints.map((endpoint) => endpointChain(index, endpoint)) : [])];
}

function serviceRules(layout: Layout, index: number, endpoints: readonly WorkEndpoint[]): readonly string[] {
  const chain = serviceChain(index);
  const pick = `numgen random mod ${endpoints.length}`;
  if (layout === "B") {
    const pairs = endpoints.map(({ ip }, k) => `${k} : ${ip} . ${TARGET_PORT}`);
    const only = endpoints.length === 1 ? endpoints[0] : undefined;
    const target = only === undefined ? `dnat ip addr . port to ${pick} map { ${pairs.join(", ")} }` : `dnat to ${only.ip}:${TARGET_PORT}`;
    return [`add rule ${TABLE} ${chain} meta l4proto tcp ${target}`];
  }
  const verdicts = endpoints.map((endpoint, k) => `${k} : goto ${endpointChain(index, endpoint)}`);
  return [
    `add rule ${TABLE} ${chain} ip daddr ${clusterIP(index)} tcp dport ${SERVICE_PORT} ip saddr != ${POD_CIDR} jump mark-for-masquerade`,
    `add rule ${TABLE} ${chain} ${pick} vmap { ${verdicts.join(", ")} }`,
    ...endpoints.flatMap((endpoint) => {
      const name = endpointChain(index, endpoint);
      return [
        `add rule ${TABLE} ${name} ip saddr ${endpoint.ip} jump mark-for-masquerade`,
        `add rule ${TABLE} ${name} meta l4proto tcp dnat to ${endpoint.ip}:${TARGET_PORT}`,
      ];
    }),
  ];
}

function serviceChain(index: number): string {
  return `service-${hashed(rowText(index))}`;
}

function endpointChain(index: number, { ip }: WorkEndpoint): string {
  return `endpoint-${hashed(`${rowText(index)}__${ip}/${TARGET_PORT}`)}`;
}

function rowText(index: number): string {
  return `bench/${serviceName(index)}/tcp/http`;
}

/** kube-proxy puts eight characters of a base32 digest before the name; of a hexadecimal one they are as long. */
function hashed(text: string): string {
  return `${createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase()}-${text}`;
}

function elements(name: string, texts: readonly string[]): readonly string[] {
  const commands: string[] = [];
  for (let from = 0; from < texts.length; from += ELEMENTS_PER_COMMAND)
    commands.push(`add element ${TABLE} ${name} { ${texts.slice(from, from + ELEMENTS_PER_COMMAND).join(", ")} }`);
  return commands;
}

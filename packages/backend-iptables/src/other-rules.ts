import { cidrContains, objectId, parseCIDR, parseIP } from "@turnout/core/backend";
import { placeOf, rulesOf } from "@turnout/host/iptables/text";
import type { IptablesObject } from "./objects.ts";

/** What a rule says of where packets go; undefined: anywhere. */
interface Target {
  /** An address, or a CIDR. */
  readonly address: string | undefined;
  readonly protocol: string | undefined;
  readonly port: number | undefined;
  readonly lastPort: number | undefined;
}

/**
 * Tell which rules of shared chains packets for these objects meet, besides the objects themselves: one of a Service that is gone, or of somebody else. Pure.
 *
 * Shape: rules about another address, protocol or port are other rows'. What a match says that isn't read here is taken to fit.
 */
export function otherRulesThan(asked: readonly IptablesObject[]): (object: IptablesObject) => boolean {
  const ids = new Set(asked.map(objectId));
  const services = asked.flatMap((object) => (object.kind === "rule" ? [targetOf(placeOf(object).rule)] : []));
  // In the filter table packets have their endpoint's address already.
  const translated = [...services, ...asked.flatMap((object) => (object.kind === "chain" ? endpointsIn(object.value) : []))];
  return (object) => {
    if (object.kind !== "rule" || ids.has(objectId(object))) return false;
    const { table, chain, rule } = placeOf(object);
    const own = targetOf(rule);
    const isForHost = chain === "KUBE-NODEPORTS" || rule.includes("--dst-type LOCAL");
    return (table === "filter" ? translated : services).some((target) => (!isForHost || target.address === undefined) && fits(own, target));
  };
}

/** The addresses that the rules of an endpoint's chain translate to. */
function endpointsIn(rules: string): readonly Target[] {
  return rulesOf(rules).flatMap((rule) => {
    const [, address = "", port] = /--to-destination \[?([0-9a-f.:]+?)\]?:(\d+)$/.exec(rule) ?? [];
    return port === undefined ? [] : [{ ...targetOf(rule), address, port: Number(port), lastPort: Number(port) }];
  });
}

/** What is inverted (`! -d`) counts as unsaid. */
function targetOf(rule: string): Target {
  const words = rule.replaceAll(/--comment (?:"(?:[^"\\]|\\.)*"|\S+)/g, "");
  const of = (flag: string): string | undefined => new RegExp(`(?<!\\S)(?<!! )${flag} (\\S+)`).exec(words)?.[1];
  const [first, last = first] = of("--dport")?.split(":") ?? [];
  const [port, lastPort] = [first, last].map((text) => (text === undefined ? undefined : Number(text)));
  return { address: of("-d"), protocol: of("-p"), port, lastPort };
}

function fits(own: Target, asked: Target): boolean {
  const isOfPort =
    own.port === undefined || asked.port === undefined || (own.port <= asked.port && asked.port <= (own.lastPort ?? own.port));
  const isOfProtocol = own.protocol === undefined || asked.protocol === undefined || own.protocol === asked.protocol;
  return isOfPort && isOfProtocol && (own.address === undefined || (asked.address !== undefined && isIn(asked.address, own.address)));
}

function isIn(address: string, range: string): boolean {
  const [ip, cidr] = [parseIP(address.split("/")[0] ?? ""), parseCIDR(range)];
  return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
}

import { flagsOf } from "../rules/tcp-flags.ts";
import { directionOf } from "../rules/values.ts";
import type { PartlyKnown } from "../rules/rule.ts";
import { isJson, setOf } from "./named-sets.ts";
import type { Json, KnownValue, NamedSets } from "./named-sets.ts";

/** The value of a header that the packet doesn't have, or of a map that has nothing for it: the rule ends there. */
export const MISSING: unique symbol = Symbol("missing");

/** A value that an expression has for a packet; undefined: not known. */
export type Value = KnownValue | typeof MISSING | undefined;

const OPERATIONS: Readonly<Record<string, (a: number, b: number) => number>> = {
  "&": (a, b) => a & b,
  "|": (a, b) => a | b,
  "^": (a, b) => a ^ b,
};

/** What an expression is for a packet. Pure, but for the packet's random numbers. */
export function valueOf(expression: unknown, packet: PartlyKnown, sets: NamedSets): Value {
  if (!isJson(expression)) return undefined;
  const [word = "", body] = Object.entries(expression)[0] ?? [];
  const compute = OPERATIONS[word];
  if (Array.isArray(body)) {
    if (word === "concat") return joined(body.map((part) => valueOf(part, packet, sets)));
    const [left, right] = [valueOf(body[0], packet, sets), body[1] as unknown];
    return compute !== undefined && typeof left === "number" && typeof right === "number" ? compute(left, right) >>> 0 : undefined;
  }
  if (!isJson(body)) return undefined;
  switch (word) {
    case "payload":
      return payloadOf(body, packet);
    case "meta":
      return metaOf(body["key"], packet);
    case "ct":
      return ctOf(body, packet);
    case "fib":
      return fibOf(body, packet);
    case "numgen":
      return packet.random === undefined || body["mode"] !== "random"
        ? undefined
        : Number(body["offset"] ?? 0) + Math.floor(packet.random() * Number(body["mod"]));
    case "map":
      return mappedOf(body, packet, sets);
    default:
      return undefined;
  }
}

function joined(parts: readonly Value[]): Value {
  if (parts.includes(MISSING)) return MISSING;
  return parts.every((part) => typeof part === "string" || typeof part === "number") ? parts : undefined;
}

function mappedOf({ key, data }: Json, packet: PartlyKnown, sets: NamedSets): Value {
  const value = valueOf(key, packet, sets);
  const map = setOf(data, sets);
  if (value === undefined || value === MISSING || map === undefined) return value === MISSING ? MISSING : undefined;
  const found = map.find(value);
  return found === undefined ? MISSING : constantOf(found.data);
}

/** A constant as nft prints it; undefined: it is no single one. Pure. */
export function constantOf(data: unknown): KnownValue | undefined {
  if (typeof data === "string" || typeof data === "number") return data;
  const parts = isJson(data) ? data["concat"] : undefined;
  return Array.isArray(parts) ? (parts as readonly (string | number)[]) : undefined;
}

function payloadOf({ protocol, field }: Json, packet: PartlyKnown): Value {
  const isIP = protocol === (packet.family === "IPv4" ? "ip" : "ip6");
  if (protocol === "ip" || protocol === "ip6") {
    if (!isIP) return MISSING;
    return { saddr: packet.source, daddr: packet.destination, protocol: packet.protocol, nexthdr: packet.protocol }[String(field)];
  }
  if (protocol === "ether" && field === "type") return packet.family === "IPv4" ? "ip" : "ip6";
  if (protocol === "tcp" && field === "flags") return packet.protocol === undefined ? undefined : (flagsOf(packet) ?? MISSING);
  if (protocol === packet.protocol && field === "type") return packet.protocol === "icmpv6" ? "packet-too-big" : "destination-unreachable";
  if (protocol === "th" || protocol === packet.protocol) return { sport: packet.sourcePort, dport: packet.destinationPort }[String(field)];
  // Another protocol's header is not there: nothing of it matches.
  const isOther = packet.protocol !== undefined && ["tcp", "udp", "sctp", "icmp", "icmpv6"].includes(String(protocol));
  return isOther ? MISSING : undefined;
}

function metaOf(key: unknown, { inDevice, outDevice, protocol, family, mark, unclearMark = 0, priority }: PartlyKnown): Value {
  switch (key) {
    case "iifname":
    case "iif":
      return inDevice;
    case "oifname":
    case "oif":
      return outDevice;
    case "l4proto":
      return protocol === "icmpv6" ? "ipv6-icmp" : protocol;
    // nft prints the first of these, and takes the second.
    case "pkttype":
      return ["host", "unicast"];
    case "nfproto":
      return family.toLowerCase();
    case "protocol":
      return family === "IPv4" ? "ip" : "ip6";
    case "priority":
      return priority;
    case "mark":
      return unclearMark === 0 ? mark : undefined;
    default:
      return undefined;
  }
}

function ctOf({ key, dir }: Json, packet: PartlyKnown): Value {
  const { state, isTranslated, original, protocol, family } = packet;
  if (dir === "original") {
    const [, version, field = key] = /^(ip6?) (.*)$/.exec(textOf(key)) ?? [];
    if (version !== undefined && version !== (family === "IPv4" ? "ip" : "ip6")) return MISSING;
    return { saddr: original?.source, daddr: original?.destination, "proto-dst": original?.destinationPort, protocol }[String(field)];
  }
  if (key === "state") return [state];
  if (key === "direction") return directionOf(packet);
  if (key === "status") return isTranslated === undefined ? undefined : isTranslated ? ["dnat"] : [];
  return undefined;
}

function fibOf({ result, flags }: Json, { isLocal, source, destination, inDevice, isAnsweredThere }: PartlyKnown): Value {
  const about = [flags].flat() as readonly unknown[];
  // nft says "false" where it looks whether a route is missing (fib saddr . iif oif missing).
  if ((result === "oif" || result === "check") && about.includes("saddr") && about.includes("iif") && isAnsweredThere !== undefined)
    return !isAnsweredThere ? "false" : result === "oif" ? inDevice : "true";
  const address = about.includes("saddr") ? source : destination;
  const isOwn = result !== "type" || address === undefined ? undefined : isLocal(address);
  return isOwn === undefined ? undefined : isOwn ? "local" : "unicast";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

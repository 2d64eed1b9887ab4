import { canonicalIP } from "@turnout/core";
import type { NftExpression, NftTypeSpec } from "@turnout/host/nft-statement";

/** Protocols that elements name. */
const PROTOCOLS: readonly string[] = ["tcp", "udp", "sctp"];
/** The largest number of each type that has numbers. */
const LARGEST: Readonly<Record<string, number>> = { inet_service: 0xffff, integer: 0xffff_ffff, mark: 0xffff_ffff, classid: 0xffff_ffff };
const ADDRESSES: Readonly<Record<string, "IPv4" | "IPv6">> = { ipv4_addr: "IPv4", ipv6_addr: "IPv6" };
/** Types whose values `nft -j` prints as text. */
const TEXTS: ReadonlySet<string> = new Set([...Object.keys(ADDRESSES), "inet_proto", "ifname"]);

/** Name the types of a declaration; undefined: nft doesn't know one of them. */
export function typesOf(spec: NftTypeSpec): readonly string[] | undefined {
  const names = typeof spec === "string" ? [spec] : "typeof" in spec ? typesOfExpression(spec.typeof) : spec;
  return names?.every((name) => TEXTS.has(name) || LARGEST[name] !== undefined) === true ? names : undefined;
}

/** Name the types of the parts of an expression; undefined: one is not known here. */
export function typesOfExpression(expression: NftExpression): readonly string[] | undefined {
  if (typeof expression !== "object") return undefined;
  if ("concat" in expression) {
    const parts = expression.concat.map(typesOfExpression);
    return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
  }
  if ("elem" in expression) return typesOfExpression(expression.elem.val);
  if ("numgen" in expression) return ["integer"];
  const [field, protocol] =
    "payload" in expression
      ? [expression.payload.field, expression.payload.protocol]
      : "ct" in expression
        ? (expression.ct.key.split(" ").toReversed() as [string, string?])
        : "meta" in expression
          ? [expression.meta.key]
          : [""];
  if (field === "saddr" || field === "daddr") return [protocol === "ip" ? "ipv4_addr" : "ipv6_addr"];
  return FIELD_TYPES[field];
}

const FIELD_TYPES: Readonly<Record<string, readonly string[]>> = {
  dport: ["inet_service"],
  sport: ["inet_service"],
  "proto-dst": ["inet_service"],
  l4proto: ["inet_proto"],
  mark: ["mark"],
  priority: ["classid"],
  iifname: ["ifname"],
  oifname: ["ifname"],
};

/** Tell whether text is a value of a type, in the one form that the fake keeps. */
export function isValue(type: string, text: string): boolean {
  const family = ADDRESSES[type];
  if (family !== undefined) {
    const ip = canonicalIP(text);
    return ip?.family === family && ip.text === text;
  }
  if (type === "inet_proto") return PROTOCOLS.includes(text);
  return type === "ifname" || (/^\d+$/.test(text) && Number(text) <= (LARGEST[type] ?? 0));
}

/** A class of traffic control as nft prints it. */
function classText(number: number): string {
  return `${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`;
}

/** A key or data as `nft -j` prints it. */
export function valueJson(types: readonly string[], text: string): unknown {
  const parts = text.split(" . ").map((part, index) => {
    const type = types[index] ?? "";
    return type === "classid" ? classText(Number(part)) : TEXTS.has(type) ? part : Number(part);
  });
  return parts.length === 1 ? parts[0] : { concat: parts };
}

import { canonicalIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";

/** A constant that was understood, in canonical text; or what nft has against it. */
export type Reading = { readonly value: string } | { readonly problem: string };

/**
 * A type of nft's.
 *
 * Shape: values are canonical text throughout the fake: addresses as core writes them, everything else as a decimal number,
 * interface names as they are. So a key is its parts joined by " . ".
 */
export interface DataType {
  /** As in `type ipv4_addr`. */
  readonly name: string;
  /** As in error messages. */
  readonly says: string;
  readonly bits: number;
  /** A set of bits: several constants may be given, and a match without operator asks for any of them. */
  readonly isMask: boolean;
  read(text: string, isQuoted: boolean): Reading;
  /** How `nft -j` prints a value. */
  json(value: string): unknown;
}

const PROTOCOL_NUMBERS: Readonly<Record<string, number>> = {
  ip: 0,
  icmp: 1,
  igmp: 2,
  tcp: 6,
  udp: 17,
  dccp: 33,
  ipv6: 41,
  gre: 47,
  esp: 50,
  ah: 51,
  "ipv6-icmp": 58,
  sctp: 132,
  udplite: 136,
};
const SERVICE_NUMBERS: Readonly<Record<string, number>> = { ssh: 22, domain: 53, http: 80, https: 443 };
const CT_STATES = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 };
const CT_STATUSES = { expected: 1, "seen-reply": 2, assured: 4, confirmed: 8, snat: 16, dnat: 32, dying: 512 };
const ADDRESS_TYPES = { unicast: 1, local: 2, broadcast: 3, anycast: 4, multicast: 5, blackhole: 6, unreachable: 7, prohibit: 8 };

/** The C library takes a plain number for an IPv4 address, and octets that begin with 0 for octal. */
function asResolverReads(text: string): string {
  if (/^\d+$/.test(text) && Number(text) <= 0xffff_ffff) {
    const number = Number(text);
    return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
  }
  return text.includes(":") ? text : text.replaceAll(/(?<![0-9])0[0-7]+(?![0-9])/g, (octal) => String(Number.parseInt(octal, 8)));
}

function addressType(name: string, says: string, bits: number, family: IPFamily): DataType {
  return {
    name,
    says,
    bits,
    isMask: false,
    read(text: string): Reading {
      const ip = canonicalIP(asResolverReads(text));
      if (ip?.family === family) return { value: ip.text };
      const why = ip === undefined ? "Temporary failure in name resolution" : "Address family for hostname not supported";
      return { problem: `Could not resolve hostname: ${why}` };
    },
    json: (value) => value,
  };
}

function numberType(
  name: string,
  says: string,
  bits: number,
  {
    names = {},
    problem,
    isMask = false,
  }: { readonly names?: Readonly<Record<string, number>>; readonly problem?: string; readonly isMask?: boolean } = {},
): DataType {
  const largest = 2n ** BigInt(bits) - 1n;
  const namesByNumber = new Map(Object.entries(names).map(([text, number]) => [String(number), text]));
  return {
    name,
    says,
    bits,
    isMask,
    read(text: string): Reading {
      if (/^(?:0x[0-9a-fA-F]+|\d+)$/.test(text)) {
        const number = BigInt(text);
        if (number <= largest) return { value: String(number) };
        return { problem: problem ?? `Value ${text} exceeds valid range 0-${largest}` };
      }
      const number = names[text];
      return number === undefined ? { problem: `Could not parse ${says}` } : { value: String(number) };
    },
    json(value: string): unknown {
      if (!isMask) return namesByNumber.get(value) ?? Number(value);
      const set = Object.entries(names).filter(([, bit]) => (Number(value) & bit) !== 0);
      return set.length === 0 ? Number(value) : set.length === 1 ? set[0]?.[0] : set.map(([text]) => text);
    },
  };
}

const SERVICE: DataType = {
  ...numberType("inet_service", "internet network service", 16, { problem: "Service out of range" }),
  read(text: string): Reading {
    if (/^[A-Za-z]/.test(text)) {
      const number = SERVICE_NUMBERS[text];
      return number === undefined
        ? { problem: "Could not resolve service: Servname not supported for ai_socktype" }
        : { value: String(number) };
    }
    return /^\d+$/.test(text) && Number(text) <= 65_535 ? { value: String(Number(text)) } : { problem: "Service out of range" };
  },
};

const PROTOCOL: DataType = {
  ...numberType("inet_proto", "Internet protocol", 8, { names: PROTOCOL_NUMBERS }),
  read(text: string): Reading {
    if (/^\d+$/.test(text)) return Number(text) <= 255 ? { value: String(Number(text)) } : { problem: "Unsupported protocol number" };
    const number = PROTOCOL_NUMBERS[text === "icmpv6" ? "ipv6-icmp" : text];
    return number === undefined ? { problem: "Could not resolve protocol name" } : { value: String(number) };
  },
};

const INTERFACE_NAME: DataType = {
  name: "ifname",
  says: "network interface name",
  bits: 128,
  isMask: false,
  read(text: string): Reading {
    if (text === "*") return { problem: "All-wildcard strings are not supported" };
    return text.length > 15 ? { problem: "String exceeds maximum length of 16" } : { value: text };
  },
  json: (value) => value,
};

/** Types a declaration may name. */
export type DataTypeName =
  "ipv4_addr" | "ipv6_addr" | "inet_proto" | "inet_service" | "mark" | "ifname" | "ct_state" | "ct_status" | "fib_addrtype";

/** Types by the name a declaration gives them. */
export const DATA_TYPES: Readonly<Record<DataTypeName, DataType>> = {
  ipv4_addr: addressType("ipv4_addr", "IPv4 address", 32, "IPv4"),
  ipv6_addr: addressType("ipv6_addr", "IPv6 address", 128, "IPv6"),
  inet_proto: PROTOCOL,
  inet_service: SERVICE,
  mark: numberType("mark", "packet mark", 32),
  ifname: INTERFACE_NAME,
  ct_state: numberType("ct_state", "conntrack state", 32, { names: CT_STATES, isMask: true }),
  ct_status: numberType("ct_status", "conntrack status", 32, { names: CT_STATUSES, isMask: true }),
  fib_addrtype: numberType("fib_addrtype", "fib address type", 32, { names: ADDRESS_TYPES }),
};

/** Whole numbers of some bits, as `numgen` gives and `ip ttl` has; `typeof` alone declares them. */
export function integerType(bits: number): DataType {
  const found = INTEGERS.get(bits) ?? numberType("integer", "integer", bits);
  INTEGERS.set(bits, found);
  return found;
}

const INTEGERS = new Map<number, DataType>();

/** The type of a family's addresses. */
export function addressTypeOf(family: "ip" | "ip6"): DataType {
  return family === "ip" ? DATA_TYPES.ipv4_addr : DATA_TYPES.ipv6_addr;
}

/** Find a type that a declaration may name. */
export function dataTypeNamed(name: string): DataType | undefined {
  return Object.values(DATA_TYPES).find((type) => type.name === name);
}

/** Tell whether two keys have the same type, part by part. */
export function isSameType(a: readonly DataType[], b: readonly DataType[]): boolean {
  return a.length === b.length && a.every((type, index) => type.name === b[index]?.name);
}

/** Describe the type of a key as nft's error messages do. */
export function describeTypes(types: readonly DataType[]): string {
  const words = types.map(({ says }) => says).join(", ");
  return types.length === 1 ? words : `concatenation of (${words})`;
}

/** A key as `nft -j` prints it. */
export function jsonOfKey(types: readonly DataType[], value: string): unknown {
  if (types.length === 1) return types[0]?.json(value);
  return { concat: value.split(" . ").map((part, index) => types[index]?.json(part)) };
}

import { hostPort, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { Action } from "../../rules/rule.ts";
import { queuesOf } from "../../rules/values.ts";
import { hex, mustBeNumber, orUnknown } from "./extension.ts";
import type { GivenOptions, OptionSpec, RuleSurroundings, TargetKind } from "./extension.ts";
import { badRule } from "./rule.ts";
import type { TargetPart } from "./rule.ts";

const ALL_BITS = 0xffff_ffff;
const MARK_OPTIONS = ["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"] as const;

const flags = (...names: readonly string[]): readonly OptionSpec[] => names.map((name) => ({ name, values: 0 }));
const word = (given: GivenOptions, name: string): string => given.get(name)?.words[0] ?? "";

const mark: TargetKind = {
  name: "MARK",
  options: MARK_OPTIONS.map((name, index) => ({ name, excludes: MARK_OPTIONS.slice(index + 1) })),
  part(given): Omit<TargetPart, "text"> & { readonly text: string } {
    const name = MARK_OPTIONS.find((option) => given.has(option));
    if (name === undefined) throw badRule("MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required");
    const [bits, mask] = readMark(name, word(given, name));
    return { text: `MARK --set-xmark ${hex(bits)}/${hex(mask)}`, action: { does: "mark", keep: ~mask, flip: bits } };
  },
};

/** What is flipped after what is cleared. @source iptables/extensions/libxt_MARK.c */
function readMark(name: (typeof MARK_OPTIONS)[number], text: string): readonly [bits: number, mask: number] {
  const [valueText = "", maskText = hex(ALL_BITS)] = name === "set-xmark" || name === "set-mark" ? text.split("/", 2) : [text];
  const [value, mask] = [mustBeNumber(valueText), mustBeNumber(maskText)];
  switch (name) {
    case "set-xmark":
      return [value, mask];
    case "set-mark":
      return [value, (value | mask) >>> 0];
    case "and-mark":
      return [0, ~value >>> 0];
    case "or-mark":
      return [value, value];
    case "xor-mark":
      return [value, 0];
  }
}

const masquerade: TargetKind = {
  name: "MASQUERADE",
  options: [{ name: "to-ports" }, ...flags("random", "random-fully")],
  part: () => ({ tables: ["nat"], hooks: ["POSTROUTING"], action: { does: "source", address: "" } }),
};

interface NatAddress {
  readonly address: string;
  readonly port?: number;
}

const PORT_PROTOCOLS: readonly (string | undefined)[] = ["tcp", "udp", "sctp", "dccp", "icmp", "ipv6-icmp"];

/** Read `ip`, `ip:port` or `[ip]:port`; ranges are not known. @throws {ProxyError} `invalid_object`. */
function readNatAddress(text: string, { family, protocol }: RuleSurroundings): NatAddress {
  const bracketed = /^\[(.*)\](?::(.*))?$/.exec(text);
  if (bracketed !== null && family === "IPv4") throw badRule("Invalid address format");
  // One colon alone comes before a port, in IPv6, too.
  const [, addressText = text, portText] = bracketed ?? /^([^:]*)(?::([^:]*))?$/.exec(text) ?? [];
  const address = parseIP(addressText);
  if (address?.family !== family) throw badRule(`Bad IP address "${addressText}"`);
  if (portText === undefined) return { address: address.text };
  if (!PORT_PROTOCOLS.includes(protocol)) throw badRule("Need TCP, UDP, SCTP or DCCP with port specification");
  return { address: address.text, port: mustBeNumber(portText, 65_535) };
}

function natTarget(name: string, option: string, hooks: readonly string[], actionOf: (to: Partial<NatAddress>) => Action): TargetKind {
  const read = (text: string, surroundings: RuleSurroundings): NatAddress | undefined =>
    orUnknown(() => readNatAddress(text, surroundings), undefined, surroundings);
  const spec: OptionSpec = {
    name: option,
    isRequired: true,
    read(text, surroundings) {
      const { address = text, port } = read(text, surroundings) ?? {};
      return { text: port === undefined ? address : hostPort(address, port) };
    },
  };
  return {
    name,
    options: [spec, ...flags("random", "persistent")],
    part(given, surroundings) {
      return { tables: ["nat"], hooks, action: actionOf(read(word(given, option), surroundings) ?? firstOf(word(given, option))) };
    },
  };
}

/** The first address of `10.0.0.1-10.0.0.9:1024-2000` or `[fd00::1]:80-90`. */
function firstOf(text: string): Partial<NatAddress> {
  const address = (/^\[([^\]-]+)/.exec(text) ?? /^([\d.]+)(?=[-:]|$)/.exec(text) ?? /^([^-]+)/.exec(text))?.[1];
  return address === undefined ? {} : { address };
}

/** Names of what is sent back, and other words for them. */
const REJECT_WITH: Readonly<Record<IPFamily, Readonly<Record<string, string>>>> = {
  IPv4: {
    "icmp-net-unreachable": "net-unreach",
    "icmp-host-unreachable": "host-unreach",
    "icmp-proto-unreachable": "proto-unreach",
    "icmp-port-unreachable": "port-unreach",
    "icmp-net-prohibited": "net-prohib",
    "icmp-host-prohibited": "host-prohib",
    "tcp-reset": "tcp-rst",
    "icmp-admin-prohibited": "admin-prohib",
  },
  IPv6: {
    "icmp6-no-route": "no-route",
    "icmp6-adm-prohibited": "adm-prohibited",
    "icmp6-addr-unreachable": "addr-unreach",
    "icmp6-port-unreachable": "port-unreach",
    "tcp-reset": "tcp-reset",
  },
};

const reject: TargetKind = {
  name: "REJECT",
  options: [
    {
      name: "reject-with",
      default: ({ family }) => (family === "IPv4" ? "icmp-port-unreachable" : "icmp6-port-unreachable"),
      read(text, { family }) {
        const [name] = Object.entries(REJECT_WITH[family]).find((names) => names.includes(text)) ?? [];
        if (name === undefined) throw badRule(`unknown reject type "${text}"`);
        return { text: name };
      },
    },
  ],
  part: (given) => ({
    ...(word(given, "reject-with").startsWith("tcp-r") ? { protocol: "tcp" } : {}),
    tables: ["filter"],
    hooks: ["INPUT", "FORWARD", "OUTPUT"],
    action: { does: "reject" },
  }),
};

/** A target of which only what it does is known. */
function loose(name: string, actionOf: (given: GivenOptions) => Action, ...options: readonly OptionSpec[]): TargetKind {
  return { name, isLoose: true, options, part: (given) => ({ action: actionOf(given) }) };
}

const queue = loose(
  "NFQUEUE",
  (given) => {
    const [first = 0, last = first] = (word(given, "queue-balance") || word(given, "queue-num") || "0").split(":").map(Number);
    return { does: "queue", queues: queuesOf(first, last), isBypassed: given.has("queue-bypass") };
  },
  { name: "queue-balance" },
  { name: "queue-num" },
  ...flags("queue-bypass", "queue-cpu-fanout"),
);

/** The mark of a connection is not followed, so what is restored from it is not known. */
const connectionMark = loose(
  "CONNMARK",
  (given) => {
    if (!given.has("restore-mark")) return { does: "nothing" };
    const mask = Number(word(given, "nfmask") || word(given, "mask") || ALL_BITS);
    return { does: "mark", keep: ~mask, flip: 0, unclear: mask };
  },
  ...flags("restore-mark"),
  { name: "nfmask" },
  { name: "mask" },
);

const LOOSE_NOTHING = ["LOG", "NFLOG", "TCPMSS", "CHECKSUM", "TRACE", "CLASSIFY", "SET", "TEE"];

/** What every table has. */
export const STANDARD_TARGETS: ReadonlyMap<string, TargetPart> = new Map(
  (["accept", "drop", "return"] as const).map((does) => [does.toUpperCase(), { text: does.toUpperCase(), action: { does } }]),
);

/** The targets with options that are known, by name; those that decide nothing that is followed are among them. */
export const TARGETS: ReadonlyMap<string, TargetKind> = new Map(
  [
    mark,
    masquerade,
    natTarget("DNAT", "to-destination", ["PREROUTING", "OUTPUT"], (to) => ({ does: "translate", ...to })),
    natTarget("SNAT", "to-source", ["POSTROUTING", "INPUT"], ({ address = "" }) => ({ does: "source", address })),
    reject,
    loose("REDIRECT", () => ({ does: "translate" }), { name: "to-ports" }),
    loose("TPROXY", () => ({ does: "translate" })),
    loose("NOTRACK", () => ({ does: "notrack" })),
    loose("CT", (given) => ({ does: given.has("notrack") ? "notrack" : "nothing" }), ...flags("notrack")),
    queue,
    connectionMark,
    ...LOOSE_NOTHING.map((name) => loose(name, () => ({ does: "nothing" }))),
  ].map((target) => [target.name, target]),
);

/** Tell whether what a rule jumps to may be a chain; a target that isn't known may be one. Pure. */
export function mayBeChain(target: string): boolean {
  return !STANDARD_TARGETS.has(target) && !TARGETS.has(target);
}

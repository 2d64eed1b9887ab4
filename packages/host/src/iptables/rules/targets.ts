import { hostPort, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { Action } from "../../rules/rule.ts";
import { queuesOf } from "../../rules/values.ts";
import { WORDS } from "../text/rule-text.ts";
import { hex, mustBeNumber, orUnknown } from "./extension.ts";
import type { GivenOptions, OptionSpec, RuleSurroundings, TargetKind } from "./extension.ts";
import { badRule } from "./rule.ts";
import type { TargetPart } from "./rule.ts";

const ALL_BITS = 0xffff_ffff;
/** What is flipped, after what is cleared; only the first two take a mask. @source iptables/extensions/libxt_MARK.c */
const MARKS: Readonly<Record<string, (value: number, mask: number) => readonly [bits: number, mask: number]>> = {
  "set-xmark": (value, mask) => [value, mask],
  "set-mark": (value, mask) => [value, (value | mask) >>> 0],
  "and-mark": (value) => [0, ~value >>> 0],
  "or-mark": (value) => [value, value],
  "xor-mark": (value) => [value, 0],
};

const flags = (...names: readonly string[]): readonly OptionSpec[] => names.map((name) => ({ name, values: 0 }));
const word = (given: GivenOptions, name: string): string => given.get(name)?.words[0] ?? "";

const mark: TargetKind = {
  name: "MARK",
  options: Object.keys(MARKS).map((name) => ({ name, isChoice: true })),
  part(given): Omit<TargetPart, "text"> & { readonly text: string } {
    const [[name, change] = badChoice()] = Object.entries(MARKS).filter(([option]) => given.has(option));
    const [value = "", mask = hex(ALL_BITS)] = name.startsWith("set-") ? word(given, name).split("/", 2) : [word(given, name)];
    const [bits, cleared] = change(mustBeNumber(value), mustBeNumber(mask));
    return { text: `MARK --set-xmark ${hex(bits)}/${hex(cleared)}`, action: { does: "mark", keep: ~cleared, flip: bits } };
  },
};

function badChoice(): never {
  throw badRule("MARK: one of its options is required");
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
  // A single colon comes before a port, also in IPv6.
  const [, addressText = text, portText] = bracketed ?? /^([^:]*)(?::([^:]*))?$/.exec(text) ?? [];
  const address = parseIP(addressText);
  if (address?.family !== family) throw badRule(`Bad IP address "${addressText}"`);
  if (portText === undefined) return { address: address.text };
  if (!PORT_PROTOCOLS.includes(protocol)) throw badRule("Need TCP, UDP, SCTP or DCCP with port specification");
  return { address: address.text, port: mustBeNumber(portText, 65_535) };
}

function natTarget(name: string, option: string, hooks: readonly string[], actionOf: (to: Partial<NatAddress>) => Action): TargetKind {
  const read: OptionSpec["read"] = (text, surroundings) => {
    const { address, port } = readNatAddress(text, surroundings);
    return { text: port === undefined ? address : hostPort(address, port) };
  };
  return {
    name,
    options: [{ name: option, isRequired: true, read }, ...flags("random", "persistent")],
    part(given, surroundings) {
      const text = word(given, option);
      return { tables: ["nat"], hooks, action: actionOf(orUnknown(() => readNatAddress(text, surroundings), firstOf(text), surroundings)) };
    },
  };
}

/** The first address of `10.0.0.1-10.0.0.9:1024-2000` or `[fd00::1]:80-90`. */
function firstOf(text: string): Partial<NatAddress> {
  const address = (/^\[([^\]-]+)/.exec(text) ?? /^([\d.]+)(?=[-:]|$)/.exec(text) ?? /^([^-]+)/.exec(text))?.[1];
  return address === undefined ? {} : { address };
}

/** Names of what is sent back; their short forms are not known. */
const REJECT_WITH: Readonly<Record<IPFamily, string>> = {
  IPv4: "icmp-net-unreachable icmp-host-unreachable icmp-proto-unreachable icmp-port-unreachable icmp-net-prohibited icmp-host-prohibited icmp-admin-prohibited tcp-reset",
  IPv6: "icmp6-no-route icmp6-adm-prohibited icmp6-addr-unreachable icmp6-port-unreachable tcp-reset",
};

const reject: TargetKind = {
  name: "REJECT",
  options: [
    {
      name: "reject-with",
      default: ({ family }) => WORDS[family].refusal,
      read(text, { family }) {
        if (!REJECT_WITH[family].split(" ").includes(text)) throw badRule(`unknown reject type "${text}"`);
        return { text };
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

/** Whether what a rule jumps to may be a chain; a target that isn't known may be one. Pure. */
export function mayBeChain(target: string): boolean {
  return !STANDARD_TARGETS.has(target) && !TARGETS.has(target);
}

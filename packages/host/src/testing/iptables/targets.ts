import { hostPort, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { hex, unsigned32 } from "./extension.ts";
import type { Extension, GivenOptions, RuleSurroundings, TargetBody } from "./extension.ts";
import { usage } from "./refusal.ts";
import type { Address } from "./walk.ts";

const ALL_BITS = 0xffff_ffff;
const MARK_OPTIONS = ["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"] as const;

const mark: Extension<TargetBody> = {
  name: "MARK",
  options: MARK_OPTIONS.map((name, index) => ({ name, excludes: MARK_OPTIONS.slice(index + 1) })),
  finish(given): TargetBody {
    const name = MARK_OPTIONS.find((option) => given.has(option));
    if (name === undefined) throw usage("MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required");
    const [bits, mask] = readMark(name, given.get(name)?.value ?? "");
    return {
      text: `-j MARK --set-xmark ${hex(bits)}/${hex(mask)}`,
      run(walk): undefined {
        walk.mark = ((walk.mark & ~mask) ^ bits) >>> 0;
      },
    };
  },
};

/** What is flipped after what is cleared. @source iptables/extensions/libxt_MARK.c */
function readMark(name: (typeof MARK_OPTIONS)[number], text: string): readonly [bits: number, mask: number] {
  const mayHaveMask = name === "set-xmark" || name === "set-mark";
  const [valueText = "", maskText] = mayHaveMask ? text.split("/", 2) : [text];
  const [value, mask] = [unsigned32(valueText), maskText === undefined ? ALL_BITS : unsigned32(maskText)];
  if (value === undefined || mask === undefined) {
    throw usage(
      mayHaveMask
        ? `MARK: bad integer value for option "--${name}", or out of range.\n`
        : `MARK: bad value for option "--${name}", or out of range (0-4294967295).\n`,
    );
  }
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

const masquerade: Extension<TargetBody> = {
  name: "MASQUERADE",
  options: [
    { name: "random", isFlag: true },
    { name: "random-fully", isFlag: true },
  ],
  finish: (given) => ({
    text: `-j MASQUERADE${given.has("random") ? " --random" : ""}${given.has("random-fully") ? " --random-fully" : ""}`,
    tables: ["nat"],
    hooks: ["POSTROUTING"],
    run(walk): "accept" {
      walk.translateSource(undefined);
      return "accept";
    },
  }),
};

interface NatAddress {
  readonly text: string;
  readonly address: Address;
  readonly port: number | undefined;
}

const PORT_PROTOCOLS: readonly (string | undefined)[] = ["tcp", "udp", "sctp", "dccp", "icmp", "ipv6-icmp"];

/** Read `ip`, `ip:port` or `[ip]:port`; ranges the fake doesn't know. */
function readNatAddress(text: string, { family, protocol }: RuleSurroundings): NatAddress {
  const bracketed = /^\[(.*)\](?::(.*))?$/.exec(text);
  if (bracketed !== null && family === "IPv4") throw usage("Invalid address format");
  // One colon alone comes before a port, in IPv6, too.
  const plain = /^([^:]*)(?::([^:]*))?$/.exec(text);
  const [, addressText = text, portText] = bracketed ?? plain ?? [];
  const address = parseIP(addressText);
  const port = portText === undefined ? undefined : unsigned32(portText);
  if (portText !== undefined) {
    if (!PORT_PROTOCOLS.includes(protocol)) throw usage("Need TCP, UDP, SCTP or DCCP with port specification");
    if (port === undefined || port > 65_535) throw usage(`Port \`${portText}' not valid`);
  }
  if (address?.family !== family) throw usage(`Bad IP address "${addressText}"`);
  return { text: port === undefined ? address.text : hostPort(address.text, port), address, port };
}

function randomFlags(given: GivenOptions): string {
  return `${given.has("random") ? " --random" : ""}${given.has("persistent") ? " --persistent" : ""}`;
}

const dnat: Extension<TargetBody> = {
  name: "DNAT",
  options: [
    { name: "to-destination", isRequired: true },
    { name: "random", isFlag: true },
    { name: "persistent", isFlag: true },
  ],
  finish(given, surroundings): TargetBody {
    const { text, address, port } = readNatAddress(given.get("to-destination")?.value ?? "", surroundings);
    return {
      text: `-j DNAT --to-destination ${text}${randomFlags(given)}`,
      tables: ["nat"],
      hooks: ["PREROUTING", "OUTPUT"],
      run(walk): "accept" {
        walk.translateDestination(address, port);
        return "accept";
      },
    };
  },
};

const snat: Extension<TargetBody> = {
  name: "SNAT",
  options: [
    { name: "to-source", isRequired: true },
    { name: "random", isFlag: true },
    { name: "persistent", isFlag: true },
  ],
  finish(given, surroundings): TargetBody {
    const { text, address } = readNatAddress(given.get("to-source")?.value ?? "", surroundings);
    return {
      text: `-j SNAT --to-source ${text}${randomFlags(given)}`,
      tables: ["nat"],
      hooks: ["POSTROUTING", "INPUT"],
      run(walk): "accept" {
        walk.translateSource(address);
        return "accept";
      },
    };
  },
};

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

const reject: Extension<TargetBody> = {
  name: "REJECT",
  options: [{ name: "reject-with" }],
  finish(given, { family }): TargetBody {
    const word = given.get("reject-with")?.value ?? "port-unreach";
    const [name] = Object.entries(REJECT_WITH[family]).find((names) => names.includes(word)) ?? [];
    if (name === undefined) throw usage(`unknown reject type "${word}"`);
    return {
      text: `-j REJECT --reject-with ${name}`,
      ...(name === "tcp-reset" ? { protocol: "tcp" } : {}),
      tables: ["filter"],
      hooks: ["INPUT", "FORWARD", "OUTPUT"],
      run: () => "reject",
    };
  },
};

/** What every table has. */
export const STANDARD_TARGETS: ReadonlyMap<string, TargetBody> = new Map([
  ["ACCEPT", { text: "-j ACCEPT", run: () => "accept" }],
  ["DROP", { text: "-j DROP", run: () => "drop" }],
  ["RETURN", { text: "-j RETURN", run: () => "return" }],
]);

/** The targets with options that the fake knows, by name. */
export const TARGETS: ReadonlyMap<string, Extension<TargetBody>> = new Map(
  [mark, masquerade, dnat, snat, reject].map((target) => [target.name, target]),
);

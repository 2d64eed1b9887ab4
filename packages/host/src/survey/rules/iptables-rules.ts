import { hasFlags } from "../../rules/tcp-flags.ts";
import { clipped, directionOf, isAddressIn, isBridged, isDevice, isPortIn, queuesOf } from "../../rules/values.ts";
import type { Action, ExternalChain, ExternalRule, ExternalTable, PartlyKnown, Test } from "../../rules/rule.ts";

/** Where the kernel calls each table's own chains in, as iptables does. @source linux netfilter_ipv4.h NF_IP_PRI_* */
const PRIORITIES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, nat: -100, filter: 0, security: 50 };
const NAT_AFTER = 100;
const HOOKS: Readonly<Record<string, string>> = {
  PREROUTING: "prerouting",
  INPUT: "input",
  FORWARD: "forward",
  OUTPUT: "output",
  POSTROUTING: "postrouting",
};

/** Read what `iptables-save` or `iptables -S` printed of one table. Pure. */
export function readIptablesTable(tool: Exclude<ExternalTable["tool"], "nft">, table: string, text: string): ExternalTable {
  const chains = new Map<string, ExternalChain & { readonly rules: ExternalRule[] }>();
  for (const line of text.split("\n")) {
    const [, declared, policy] = /^(?::|-N |-P )(\S+)(?: (\S+))?/.exec(line) ?? [];
    if (declared !== undefined) chains.set(declared, { name: declared, ...hookOf(table, declared, policy), rules: [] });
    const [, chain, rest] = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain !== undefined) chains.get(chain)?.rules.push(readRule(`${chain} ${rest ?? ""}`.trim(), `${tool} -t ${table}`));
  }
  return { name: `${tool} table ${table}`, tool, place: table, chains };
}

function hookOf(table: string, chain: string, policy: string | undefined): Pick<ExternalChain, "hook"> {
  const at = HOOKS[chain];
  if (at === undefined) return {};
  const isAfter = table === "nat" && (at === "postrouting" || at === "input");
  return {
    hook: { at, priority: isAfter ? NAT_AFTER : (PRIORITIES[table] ?? 0), type: table, policy: policy === "DROP" ? "drop" : "accept" },
  };
}

/** Words of a line; quoted ones are one. */
function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}

function readRule(text: string, command: string): ExternalRule {
  const words = wordsOf(text);
  const tests: Test[] = [];
  const actions: Action[] = [];
  let isNot = false;
  let match = "";
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "!") {
      isNot = true;
      continue;
    }
    if (word === "-m") match = words[at + 1] ?? "";
    if (word === "-m" && words[at + 1] === "rpfilter") tests.push(returnTest(words.includes("--invert")));
    if (word === "-j" || word === "-g") {
      actions.push(actionOf(word, words[at + 1] ?? "", words.slice(at + 2)));
      break;
    }
    // The mark of the connection is another one than the packet's.
    const known = word === "--mark" && match === "connmark" ? undefined : TESTS[word];
    if (known === undefined) {
      // Of a match that isn't known it can't be told; its values are words without a dash.
      if (!word.startsWith("-")) continue;
      tests.push(() => undefined);
      isNot = false;
      continue;
    }
    const values = words.slice(at + 1, at + 1 + known.values);
    at += known.values;
    const isNegated = isNot;
    isNot = false;
    if (known.test === undefined) continue;
    const { test } = known;
    tests.push((packet) => {
      const isMatching = test(packet, values);
      return isMatching === undefined ? undefined : isMatching !== isNegated;
    });
  }
  return { text: clipped(`-A ${text}`), deletion: `${command} -D ${text}`, tests, actions };
}

/** Whether the packet came in by the device that answers to it leave by. */
function returnTest(isInverted: boolean): Test {
  return ({ isAnsweredThere }) => (isAnsweredThere === undefined ? undefined : isAnsweredThere !== isInverted);
}

interface KnownMatch {
  /** How many words follow. */
  readonly values: number;
  /** Absent: it matches everything, as `-m`. */
  readonly test?: (packet: PartlyKnown, values: readonly string[]) => boolean | undefined;
}

const ports = (of: "sourcePort" | "destinationPort"): KnownMatch => ({
  values: 1,
  test: (packet, [text = ""]) => isPortIn(packet[of], text),
});
const state: KnownMatch = {
  values: 1,
  test: (packet, [text = ""]) => {
    const words = text.split(",");
    return words.includes(packet.state.toUpperCase()) || (words.includes("DNAT") && packet.isTranslated);
  },
};
const addressType = (of: "source" | "destination"): KnownMatch => ({
  values: 1,
  test: (packet, [text = ""]) => {
    const address = packet[of];
    const isLocal = address === undefined ? undefined : packet.isLocal(address);
    return isLocal === undefined || (text !== "LOCAL" && text !== "UNICAST") ? undefined : isLocal === (text === "LOCAL");
  },
});

const TESTS: Readonly<Record<string, KnownMatch>> = {
  "-m": { values: 1 },
  "--comment": { values: 1 },
  "-4": { values: 0 },
  "-6": { values: 0 },
  "-s": { values: 1, test: ({ source }, [text = ""]) => isAddressIn(source, text) },
  "-d": { values: 1, test: ({ destination }, [text = ""]) => isAddressIn(destination, text) },
  "--src-range": { values: 1, test: ({ source }, [text = ""]) => isAddressIn(source, text) },
  "--dst-range": { values: 1, test: ({ destination }, [text = ""]) => isAddressIn(destination, text) },
  "-i": { values: 1, test: ({ inDevice }, [text = ""]) => isDevice(inDevice, text) },
  "-o": { values: 1, test: ({ outDevice }, [text = ""]) => isDevice(outDevice, text) },
  "-p": {
    values: 1,
    test: ({ protocol }, [text = ""]) =>
      text === "all" || (protocol === undefined ? undefined : text === protocol || (text === "ipv6-icmp" && protocol === "icmpv6")),
  },
  "--sport": ports("sourcePort"),
  "--dport": ports("destinationPort"),
  "--sports": ports("sourcePort"),
  "--dports": ports("destinationPort"),
  "--ctstate": state,
  "--state": state,
  "--ctorigsrc": { values: 1, test: ({ original }, [text = ""]) => isAddressIn(original?.source, text) },
  "--ctorigdst": { values: 1, test: ({ original }, [text = ""]) => isAddressIn(original?.destination, text) },
  "--ctorigdstport": { values: 1, test: ({ original }, [text = ""]) => isPortIn(original?.destinationPort, text) },
  "--ctdir": {
    values: 1,
    test: (packet, [text = ""]) => {
      const direction = directionOf(packet);
      return direction === undefined ? undefined : text.toLowerCase() === direction;
    },
  },
  // What is for a Service is for one host.
  "--pkt-type": { values: 1, test: (_packet, [text = ""]) => text === "unicast" || text === "host" },
  "--physdev-is-bridged": { values: 0, test: isBridged },
  "--src-type": addressType("source"),
  "--dst-type": addressType("destination"),
  "--icmp-type": {
    values: 1,
    test: (_packet, [text = ""]) => ["3", "3/4", "destination-unreachable", "fragmentation-needed", "any"].includes(text),
  },
  "--icmpv6-type": { values: 1, test: (_packet, [text = ""]) => ["2", "packet-too-big"].includes(text) },
  "--mark": {
    values: 1,
    test: ({ mark, unclearMark = 0 }, [text = ""]) => {
      if (mark === undefined) return undefined;
      const [value = "", mask = "0xffffffff"] = text.split("/");
      const isMatching = ((mark ^ Number(value)) & Number(mask) & ~unclearMark) === 0;
      return isMatching && (unclearMark & Number(mask)) !== 0 ? undefined : isMatching;
    },
  },
  "--match-set": {
    values: 2,
    test: ({ isInSet, source, destination, sourcePort, destinationPort }, [set = "", sides = ""]) => {
      const isSource = sides.startsWith("src");
      const address = isSource ? source : destination;
      if (address === undefined) return undefined;
      return isInSet(set, address, sides.includes(",") ? (isSource ? sourcePort : destinationPort) : undefined);
    },
  },
  "--syn": { values: 0, test: (packet) => hasFlags(packet, ["fin", "syn", "rst", "ack"], ["syn"]) },
  "--tcp-flags": {
    values: 2,
    test: (packet, [mask = "", wanted = ""]) => hasFlags(packet, mask.toLowerCase().split(","), wanted.toLowerCase().split(",")),
  },
  // Options of rpfilter, which is judged as a whole.
  "--loose": { values: 0 },
  "--validmark": { values: 0 },
  "--accept-local": { values: 0 },
  "--invert": { values: 0 },
};

/** Tell whether what a rule jumps to may be a chain; a target that isn't known may be one. Pure. */
export function mayBeChain(target: string): boolean {
  return actionOf("-j", target, []).does === "jump";
}

function actionOf(word: string, target: string, options: readonly string[]): Action {
  switch (target) {
    case "ACCEPT":
      return { does: "accept" };
    case "DROP":
      return { does: "drop" };
    case "REJECT":
      return { does: "reject" };
    case "RETURN":
      return { does: "return" };
    case "DNAT":
    case "REDIRECT":
    case "TPROXY":
      return { does: "translate" };
    case "NOTRACK":
      return { does: "notrack" };
    case "CT":
      return { does: options.includes("--notrack") ? "notrack" : "nothing" };
    case "MARK":
      return markOf(options);
    case "CONNMARK":
      return connectionMarkOf(options);
    case "MASQUERADE":
      return { does: "source", address: "" };
    case "SNAT":
      return { does: "source", address: addressIn(valueOf(options, "--to-source")) };
    case "NFQUEUE": {
      const [first = 0, last = first] = (valueOf(options, "--queue-balance") || valueOf(options, "--queue-num") || "0")
        .split(":")
        .map(Number);
      return { does: "queue", queues: queuesOf(first, last), isBypassed: options.includes("--queue-bypass") };
    }
    default:
      // Targets of extensions are capitals without a dash; they decide nothing that is followed here.
      return FOLLOWED_NO_FURTHER.has(target) ? { does: "nothing" } : { does: word === "-g" ? "goto" : "jump", chain: target };
  }
}

const FOLLOWED_NO_FURTHER: ReadonlySet<string> = new Set(["LOG", "NFLOG", "TCPMSS", "CHECKSUM", "TRACE", "CLASSIFY", "SET", "TEE"]);

function valueOf(options: readonly string[], name: string): string {
  const at = options.indexOf(name);
  return at < 0 ? "" : (options[at + 1] ?? "");
}

/** The first address of `10.0.0.1`, `10.0.0.1-10.0.0.9:1024-2000` or `[fd00::1]:80`. */
function addressIn(text: string): string {
  return (/^\[([^\]-]+)/.exec(text) ?? /^([\d.]+)(?=[-:]|$)/.exec(text) ?? /^([^-]+)/.exec(text))?.[1] ?? "";
}

/** The mark of a connection is not followed, so what is restored from it is not known. */
function connectionMarkOf(options: readonly string[]): Action {
  if (!options.includes("--restore-mark")) return { does: "nothing" };
  const mask = Number(valueOf(options, "--nfmask") || valueOf(options, "--mask") || 0xff_ff_ff_ff);
  return { does: "mark", keep: ~mask, flip: 0, unclear: mask };
}

function markOf(options: readonly string[]): Action {
  const [how = "", text = ""] = options;
  const [valueText = "0", maskText = "0xffffffff"] = text.split("/");
  const [value, mask] = [Number(valueText), Number(maskText)];
  if (how === "--set-xmark") return { does: "mark", keep: ~mask, flip: value };
  if (how === "--set-mark") return { does: "mark", keep: ~(mask | value), flip: value };
  if (how === "--or-mark") return { does: "mark", keep: ~value, flip: value };
  if (how === "--and-mark") return { does: "mark", keep: value, flip: 0 };
  return { does: "nothing" };
}

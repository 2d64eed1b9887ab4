import { isAddressIn, isDevice, isPortIn } from "./values.ts";
import type { Action, ForeignChain, ForeignRule, ForeignTable, HookedPacket, Test } from "./rule.ts";

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
export function readIptablesTable(tool: Exclude<ForeignTable["tool"], "nft">, table: string, text: string): ForeignTable {
  const chains = new Map<string, ForeignChain & { readonly rules: ForeignRule[] }>();
  for (const line of text.split("\n")) {
    const [, declared, policy] = /^(?::|-N |-P )(\S+)(?: (\S+))?/.exec(line) ?? [];
    if (declared !== undefined) chains.set(declared, { name: declared, ...hookOf(table, declared, policy), rules: [] });
    const [, chain, rest] = /^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain !== undefined) chains.get(chain)?.rules.push(readRule(rest ?? ""));
  }
  return { name: `${tool} table ${table}`, tool, place: table, chains };
}

function hookOf(table: string, chain: string, policy: string | undefined): Pick<ForeignChain, "hook"> {
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

function readRule(text: string): ForeignRule {
  const words = wordsOf(text);
  const tests: Test[] = [];
  const actions: Action[] = [];
  let isNot = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "!") {
      isNot = true;
      continue;
    }
    if (word === "-j" || word === "-g") {
      actions.push(actionOf(word, words[at + 1] ?? "", words.slice(at + 2)));
      break;
    }
    const known = TESTS[word];
    if (known === undefined) {
      // Of a match that isn't known it can't be told; its values are words without a dash.
      if (word.startsWith("-")) tests.push(() => undefined);
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
  return { text: `-A ${text}`.slice(0, 160), tests, actions };
}

interface KnownMatch {
  /** How many words follow. */
  readonly values: number;
  /** Absent: it matches everything, as `-m`. */
  readonly test?: (packet: HookedPacket, values: readonly string[]) => boolean | undefined;
}

const ports = (of: "sourcePort" | "destinationPort"): KnownMatch => ({
  values: 1,
  test: (packet, [text = ""]) => isPortIn(packet[of], text),
});
const state: KnownMatch = {
  values: 1,
  test: (packet, [text = ""]) =>
    text.split(",").some((one) => one === packet.state.toUpperCase() || (one === "DNAT" && packet.isTranslated)),
};
const addressType = (of: "source" | "destination"): KnownMatch => ({
  values: 1,
  test: (packet, [text = ""]) => (text === "LOCAL" || text === "UNICAST" ? packet.isLocal(packet[of]) === (text === "LOCAL") : undefined),
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
    test: ({ protocol }, [text = ""]) => text === "all" || text === protocol || (text === "ipv6-icmp" && protocol === "icmpv6"),
  },
  "--sport": ports("sourcePort"),
  "--dport": ports("destinationPort"),
  "--sports": ports("sourcePort"),
  "--dports": ports("destinationPort"),
  "--ctstate": state,
  "--state": state,
  "--src-type": addressType("source"),
  "--dst-type": addressType("destination"),
  "--icmp-type": {
    values: 1,
    test: (_packet, [text = ""]) => ["3", "3/4", "destination-unreachable", "fragmentation-needed", "any"].includes(text),
  },
  "--icmpv6-type": { values: 1, test: (_packet, [text = ""]) => ["2", "packet-too-big"].includes(text) },
  "--mark": {
    values: 1,
    test: ({ mark }, [text = ""]) => {
      const [value = "", mask = "0xffffffff"] = text.split("/");
      return (mark & Number(mask)) >>> 0 === Number(value) >>> 0;
    },
  },
  "--match-set": {
    values: 2,
    test: ({ isInSet, source, destination, sourcePort, destinationPort }, [set = "", sides = ""]) => {
      const isSource = sides.startsWith("src");
      return isInSet(set, isSource ? source : destination, sides.includes(",") ? (isSource ? sourcePort : destinationPort) : undefined);
    },
  },
  // What opens a connection has SYN alone; of answers nothing is asked.
  "--syn": { values: 0, test: (packet) => packet.state === "new" },
};

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
    default:
      // Targets of extensions are capitals without a dash; they decide nothing that is followed here.
      return FOLLOWED_NO_FURTHER.has(target) ? { does: "nothing" } : { does: word === "-g" ? "goto" : "jump", chain: target };
  }
}

const FOLLOWED_NO_FURTHER: ReadonlySet<string> = new Set([
  "LOG",
  "NFLOG",
  "MASQUERADE",
  "SNAT",
  "CONNMARK",
  "TCPMSS",
  "CHECKSUM",
  "TRACE",
  "CLASSIFY",
  "SET",
  "TEE",
  "NFQUEUE",
]);

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

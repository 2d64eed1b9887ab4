import type { IPFamily } from "@turnout/core";
import { hex, not, unsigned32 } from "./extension.ts";
import type { Extension, Given, GivenOptions, MatchBody } from "./extension.ts";
import { ipvsMatch } from "./ipvs-match.ts";
import { physdevMatch } from "./physdev-match.ts";
import { recentMatch } from "./recent-match.ts";
import { usage } from "./refusal.ts";
import { setMatch } from "./set-match.ts";
import { quoted } from "./split-words.ts";
import type { Walk } from "./walk.ts";

const COMMENT_MAX = 255;

const comment: Extension<MatchBody> = {
  name: "comment",
  options: [{ name: "comment", isRequired: true }],
  finish(given): MatchBody {
    const text = given.get("comment")?.value ?? "";
    // The real limit is 256 bytes with the end; what kube-proxy writes is ASCII.
    if (text.length > COMMENT_MAX) throw usage("COMMENT must be shorter than 256 chars");
    return { name: "comment", text: `-m comment --comment ${quoted(text)}`, test: () => true };
  },
};

interface PortRange {
  readonly text: string;
  has(port: number): boolean;
}

function readPort(text: string): number {
  const port = unsigned32(text);
  if (port === undefined || port > 65_535) throw usage(`invalid port/service \`${text}' specified`);
  return port;
}

function readPorts(option: string, given: Given | undefined): PortRange {
  if (given === undefined) return { text: "", has: () => true };
  const [first = "", last] = given.value.split(":", 2);
  const min = first === "" && last !== undefined ? 0 : readPort(first);
  const max = last === undefined ? min : last === "" ? 65_535 : readPort(last);
  if (min > max) throw usage("invalid portrange (min > max)");
  const isAll = min === 0 && max === 65_535 && !given.isInverted;
  return {
    text: isAll ? "" : ` ${not(given)}--${option} ${min === max ? min : `${min}:${max}`}`,
    has: (port) => (min <= port && port <= max) !== given.isInverted,
  };
}

function portMatch(protocol: string): Extension<MatchBody> {
  return {
    name: protocol,
    options: [
      { name: "source-port", alias: "sport", isInvertible: true },
      { name: "destination-port", alias: "dport", isInvertible: true },
    ],
    finish(given): MatchBody {
      const source = readPorts("sport", given.get("source-port"));
      const destination = readPorts("dport", given.get("destination-port"));
      return {
        name: protocol,
        text: `-m ${protocol}${source.text}${destination.text}`,
        protocol,
        test: (walk) => walk.protocol === protocol && source.has(walk.sourcePort) && destination.has(walk.port),
      };
    },
  };
}

/** Read a list of words; gives those that were named, in the order of `known`. */
function readWords(text: string, known: readonly string[], complain: (word: string) => string): readonly string[] {
  const words = text.split(",").map((word) => {
    const found = known.find((one) => one === word.toUpperCase());
    if (found === undefined) throw usage(complain(word));
    return found;
  });
  return known.filter((word) => words.includes(word));
}

const STATES = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"];
const STATUSES = ["EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED", "NONE"];

const conntrack: Extension<MatchBody> = {
  name: "conntrack",
  options: [
    { name: "ctstate", isInvertible: true },
    { name: "ctstatus", isInvertible: true },
  ],
  finish(given): MatchBody {
    const [state, status] = [given.get("ctstate"), given.get("ctstatus")];
    if (state === undefined && status === undefined) throw usage("conntrack: At least one option is required");
    const states = state && readWords(state.value, STATES, (word) => `Bad ctstate "${word}"`);
    const statuses = status && readWords(status.value, STATUSES, (word) => `Bad ctstatus "${word}"`);
    const stateText = state === undefined ? "" : ` ${not(state)}--ctstate ${states?.join(",")}`;
    const statusText = status === undefined ? "" : ` ${not(status)}--ctstatus ${statuses?.join(",")}`;
    const isState = ({ isDestinationTranslated, isSourceTranslated }: Walk): boolean =>
      states === undefined ||
      states.includes("NEW") ||
      (states.includes("DNAT") && isDestinationTranslated) ||
      (states.includes("SNAT") && isSourceTranslated);
    return {
      name: "conntrack",
      text: `-m conntrack${stateText}${statusText}`,
      // A first packet has none of the statuses yet.
      test: (walk) =>
        isState(walk) !== (state?.isInverted ?? false) &&
        (statuses === undefined || statuses.includes("NONE") !== (status?.isInverted ?? false)),
    };
  },
};

const ADDRESS_TYPES = [
  "UNSPEC",
  "UNICAST",
  "LOCAL",
  "BROADCAST",
  "ANYCAST",
  "MULTICAST",
  "BLACKHOLE",
  "UNREACHABLE",
  "PROHIBIT",
  "THROW",
  "NAT",
  "XRESOLVE",
];

function addressType(address: string, family: IPFamily, { host }: Walk): string {
  if (host.isLocal(address)) return "LOCAL";
  if (address === "255.255.255.255") return "BROADCAST";
  const isMulticast = family === "IPv6" ? address.startsWith("ff") : /^(?:22[4-9]|23\d)\./.test(address);
  return isMulticast ? "MULTICAST" : "UNICAST";
}

const addrtype: Extension<MatchBody> = {
  name: "addrtype",
  options: [
    { name: "src-type", isInvertible: true },
    { name: "dst-type", isInvertible: true },
  ],
  finish(given): MatchBody {
    const sides = (["src-type", "dst-type"] as const).flatMap((name) => {
      const option = given.get(name);
      if (option === undefined) return [];
      const types = readWords(option.value, ADDRESS_TYPES, (word) => `addrtype: bad type "${word}"`);
      const addressOf = (walk: Walk): string => (name === "src-type" ? walk.source : walk.destination);
      return [
        {
          text: ` ${not(option)}--${name} ${types.join(",")}`,
          test: (walk: Walk): boolean => types.includes(addressType(addressOf(walk), walk.family, walk)) !== option.isInverted,
        },
      ];
    });
    if (sides.length === 0) throw usage("addrtype: you must specify --src-type or --dst-type");
    return {
      name: "addrtype",
      text: `-m addrtype${sides.map(({ text }) => text).join("")}`,
      test: (walk) => sides.every((side) => side.test(walk)),
    };
  },
};

const mark: Extension<MatchBody> = {
  name: "mark",
  options: [{ name: "mark", isInvertible: true, isRequired: true }],
  finish(given): MatchBody {
    const option = given.get("mark") ?? { value: "", isInverted: false };
    const [valueText = "", maskText] = option.value.split("/", 2);
    const [value, mask] = [unsigned32(valueText), maskText === undefined ? 0xffff_ffff : unsigned32(maskText)];
    if (value === undefined || mask === undefined) throw usage('mark: bad integer value for option "--mark", or out of range.\n');
    return {
      name: "mark",
      text: `-m mark ${not(option)}--mark ${hex(value)}${mask === 0xffff_ffff ? "" : `/${hex(mask)}`}`,
      test: (walk) => ((walk.mark & mask) >>> 0 === value) !== option.isInverted,
    };
  },
};

const statistic: Extension<MatchBody> = {
  name: "statistic",
  options: [
    { name: "mode", isRequired: true },
    { name: "probability", isInvertible: true, needs: ["mode"] },
  ],
  finish(given: GivenOptions): MatchBody {
    const mode = given.get("mode")?.value ?? "";
    // Of the modes the fake knows one.
    if (mode !== "random") throw usage(`Bad mode "${mode}"`);
    const option = given.get("probability");
    if (option === undefined) throw usage("--probability must be specified when using random mode");
    const wanted = /^(?:\d+\.?\d*|\.\d+)$/.test(option.value) ? Number(option.value) : Number.NaN;
    if (!(wanted <= 1)) throw usage('statistic: bad value for option "--probability", or out of range (0-1).\n');
    // The kernel has 31 bits for it.
    const probability = Math.round(wanted * 2 ** 31) / 2 ** 31;
    return {
      name: "statistic",
      text: `-m statistic --mode random ${not(option)}--probability ${probability.toFixed(11)}`,
      test: ({ host }) => host.random() < probability !== option.isInverted,
    };
  },
};

const nfacct: Extension<MatchBody> = {
  name: "nfacct",
  options: [{ name: "nfacct-name", isRequired: true }],
  // Nothing here makes such counters, so there are none.
  finish: (given) => ({
    name: "nfacct",
    text: `-m nfacct --nfacct-name ${given.get("nfacct-name")?.value}`,
    isMissing: true,
    test: () => true,
  }),
};

/** The matches the fake knows, by name. */
export const MATCHES: ReadonlyMap<string, Extension<MatchBody>> = new Map(
  [
    comment,
    portMatch("tcp"),
    portMatch("udp"),
    portMatch("sctp"),
    conntrack,
    addrtype,
    mark,
    statistic,
    recentMatch,
    nfacct,
    setMatch,
    ipvsMatch,
    physdevMatch,
  ].map((match) => [match.name, match]),
);

import { parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { PartlyKnown, Test } from "../../rules/rule.ts";
import { directionOf, isAddressIn, isPortIn } from "../../rules/values.ts";
import { WORDS } from "../text/rule-text.ts";
import { BITS, isInNetwork, readNetwork } from "./addresses.ts";
import { asks, hex, mustBeNumber, readWords } from "./extension.ts";
import type { MatchKind, OptionSpec } from "./extension.ts";
import { protocolName, protocolNumber } from "./protocols.ts";
import { badRule } from "./rule.ts";

const STATES = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"];
const STATUSES = ["EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED", "NONE"];

const state = (name: string): OptionSpec => ({
  name,
  isInvertible: true,
  read(text) {
    const words = readWords(text, STATES);
    const test: Test = ({ state: is, isTranslated, isSourceTranslated = false }) =>
      words.includes(is.toUpperCase()) || (words.includes("SNAT") && isSourceTranslated) || (words.includes("DNAT") && isTranslated);
    return { text: words.join(","), test };
  },
});

const conntrack: MatchKind = {
  name: "conntrack",
  needsOption: true,
  options: [
    state("ctstate"),
    asks("ctorigsrc", ({ original }, text) => isAddressIn(original?.source, text)),
    asks("ctorigdst", ({ original }, text) => isAddressIn(original?.destination, text)),
    asks("ctorigdstport", ({ original }, text) => isPortIn(original?.destinationPort, text)),
    {
      name: "ctstatus",
      isInvertible: true,
      // What opens a connection has none of them yet; NONE asks for no bit, so nothing has it.
      read: (text) => ({ text: readWords(text, STATUSES).join(","), test: (packet) => (packet.state === "new" ? false : undefined) }),
    },
    asks("ctdir", (packet, text) => {
      const direction = directionOf(packet);
      return direction === undefined ? undefined : text.toLowerCase() === direction;
    }),
  ],
};

const mark: OptionSpec = {
  name: "mark",
  isInvertible: true,
  isRequired: true,
  read(text) {
    const [valueText = "", maskText = "0xffffffff"] = text.split("/", 2);
    const [value, mask] = [mustBeNumber(valueText), mustBeNumber(maskText)];
    const test: Test = ({ mark: is, unclearMark = 0 }) => {
      if (is === undefined) return undefined;
      // Bits of the value outside of the mask are never met.
      const isMatching = (((is & mask) ^ value) & ~(unclearMark & mask)) === 0;
      return isMatching && (unclearMark & mask) !== 0 ? undefined : isMatching;
    };
    return { text: `${hex(value)}${mask === 0xffff_ffff ? "" : `/${hex(mask)}`}`, test };
  },
};

const statistic: MatchKind = {
  name: "statistic",
  options: [
    {
      name: "mode",
      isRequired: true,
      read(mode) {
        // Of the modes one is known.
        if (mode !== "random") throw badRule(`Bad mode "${mode}"`);
        return { text: mode };
      },
    },
    {
      name: "probability",
      isInvertible: true,
      isRequired: true,
      read(text) {
        const wanted = /^(?:\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
        if (!(wanted <= 1)) throw badRule(`bad probability ${text}`);
        // The kernel has 31 bits for it.
        const probability = Math.round(wanted * 2 ** 31) / 2 ** 31;
        return { text: probability.toFixed(11), test: ({ random }) => (random === undefined ? undefined : random() < probability) };
      },
    },
  ],
};

const RECENT_ACTIONS = ["set", "rcheck", "update", "remove"] as const;

/** Clients seen recently: session affinity. Lists by source address, whole; no hit counts. */
const recent: MatchKind = {
  name: "recent",
  options: [
    ...RECENT_ACTIONS.map((name) => ({ name, values: 0, isInvertible: true, isChoice: true }) as const),
    {
      name: "seconds",
      read(text) {
        if (mustBeNumber(text) === 0) throw badRule("bad value 0 of --seconds");
        return { text: String(mustBeNumber(text)) };
      },
    },
    { name: "reap", values: 0, needs: ["seconds"] },
    { name: "name", default: () => "DEFAULT" },
    {
      name: "mask",
      default: ({ family }) => WORDS[family].mask,
      read(text, { family }) {
        if (text !== WORDS[family].mask) throw badRule(`whole addresses only, mask ${WORDS[family].mask}`);
        return { text };
      },
    },
    { name: "rsource", values: 0, default: () => "" },
  ],
  part(given) {
    const action = RECENT_ACTIONS.find((name) => given.has(name));
    const list = given.get("name")?.words[0] ?? "DEFAULT";
    const seconds = Number(given.get("seconds")?.words[0] ?? 0);
    const isInverted = action !== undefined && given.get(action)?.isInverted === true;
    const test: Test = ({ source, recent: ask }) => {
      if (action === undefined || ask === undefined || source === undefined) return undefined;
      return ask({ action, list, seconds, source }) !== isInverted;
    };
    return { tests: [test], recent: list };
  },
};

const ofVirtual = (
  name: string,
  readIt: (text: string, family: IPFamily) => { text: string; test: (end: VirtualEnd) => boolean },
): OptionSpec => ({
  name,
  isInvertible: true,
  read(words, { family }) {
    const { text, test } = readIt(words, family);
    return { text, test: ({ virtual }) => (virtual === undefined ? undefined : virtual !== "none" && test(virtual)) };
  },
});

type VirtualEnd = Exclude<NonNullable<PartlyKnown["virtual"]>, "none">;

const isOfIpvs: Test = ({ virtual }) => (virtual === undefined ? undefined : virtual !== "none");

/**
 * Connections of IPVS, by their virtual server. Methods, directions and controlling connections are not there.
 *
 * Edges: the first packet of a connection is one of IPVS's once IPVS has had it: behind INPUT's filter, or behind OUTPUT's nat.
 */
const ipvs: MatchKind = {
  name: "ipvs",
  needsOption: true,
  options: [
    // It is not printed with others, which it says, too.
    { name: "ipvs", values: 0, isInvertible: true, read: () => ({ text: "", test: isOfIpvs }) },
    ofVirtual("vproto", (text) => {
      const name = protocolName(text);
      return { text: String(protocolNumber(name)), test: ({ protocol }) => protocol === name };
    }),
    ofVirtual("vaddr", (text, family) => {
      const value = readNetwork(text, family);
      const { prefixLength } = value;
      // Bits beyond the mask stay.
      const address = parseIP(text.split("/", 1)[0] ?? "")?.text;
      return {
        text: `${address}${prefixLength === BITS[family] ? "" : `/${prefixLength}`}`,
        test: (end) => isInNetwork(end.address, { value, isInverted: false }) === true,
      };
    }),
    ofVirtual("vport", (text) => {
      if (!/^\d+$/.test(text)) throw badRule(`Port "${text}" does not resolve to anything.\n`);
      // The tool lets higher ones wrap.
      const number = Number(text) & 0xffff;
      return { text: String(number), test: ({ port: is }) => is === number };
    }),
  ],
  part(given, _, { text, tests }) {
    if (given.size === 1) return given.has("ipvs") ? {} : { tests: [isOfIpvs, ...tests] };
    if (given.get("ipvs")?.isInverted === true) throw badRule("! --ipvs cannot be together with other options");
    return { text: `-m ipvs${text.replace(" --ipvs", "")}`, tests: [isOfIpvs, ...tests] };
  },
};

/** Matches on what this host knows of a packet and its connection. */
export const CONNECTION_MATCHES: readonly MatchKind[] = [
  conntrack,
  { name: "state", needsOption: true, options: [state("state")] },
  { name: "mark", options: [mark] },
  // The mark of the connection is another one than the packet's.
  { name: "connmark", isLoose: true, options: [asks("mark", () => undefined)] },
  statistic,
  recent,
  ipvs,
];

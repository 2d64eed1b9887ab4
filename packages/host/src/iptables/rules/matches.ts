import type { IPFamily } from "@turnout/core";
import type { Test } from "../../rules/rule.ts";
import { hasFlags } from "../../rules/tcp-flags.ts";
import { isAddressIn, isBridged, isPortIn } from "../../rules/values.ts";
import { CONNECTION_MATCHES } from "./connection-matches.ts";
import { asks, mustBeNumber, readWords, UNKNOWN } from "./extension.ts";
import type { MatchKind, OptionSpec, OptionValue } from "./extension.ts";
import { badRule } from "./rule.ts";
import { quoted } from "./words.ts";

const COMMENT_MAX = 255;
const PORT_MAX = 65_535;

const comment: MatchKind = {
  name: "comment",
  options: [
    {
      name: "comment",
      isRequired: true,
      read(text, { isStrict }) {
        // The real limit is 256 bytes with the end; what kube-proxy writes is ASCII.
        if (isStrict && text.length > COMMENT_MAX) throw badRule("COMMENT must be shorter than 256 chars");
        return { text: quoted(text) };
      },
    },
  ],
};

const port = (of: "sourcePort" | "destinationPort", name: string, alias: string): OptionSpec => ({
  name,
  alias,
  isInvertible: true,
  read(value, { isStrict }) {
    const [first = "", last] = value.split(":", 2);
    const min = first === "" && last !== undefined ? 0 : mustBeNumber(first, PORT_MAX);
    const max = last === undefined ? min : last === "" ? PORT_MAX : mustBeNumber(last, PORT_MAX);
    if (min > max && isStrict) throw badRule("invalid portrange (min > max)");
    const text = min === max ? String(min) : `${min}:${max}`;
    const test: Test = ({ [of]: asked }) => (asked === undefined ? undefined : min <= asked && asked <= max);
    return { text, test, isAll: min === 0 && max === PORT_MAX };
  },
});

const flagWords = (text: string): readonly string[] => {
  const known = ["FIN", "SYN", "RST", "PSH", "ACK", "URG"];
  const words = text === "ALL" ? known : text === "NONE" ? [] : readWords(text, known);
  return known.filter((word) => words.includes(word));
};

const readFlags = (mask: string, wanted: string): OptionValue => {
  const [looked, asked] = [flagWords(mask), flagWords(wanted)];
  return {
    text: [looked, asked].map((words) => (words.length === 0 ? "NONE" : words.join(","))).join(" "),
    test: (packet) => hasFlags(packet, lower(looked), lower(asked)),
  };
};

const lower = (words: readonly string[]): readonly string[] => words.map((word) => word.toLowerCase());

function portMatch(protocol: string, ...more: readonly OptionSpec[]): MatchKind {
  return {
    name: protocol,
    options: [port("sourcePort", "sport", "source-port"), port("destinationPort", "dport", "destination-port"), ...more],
    part: () => ({ protocol }),
  };
}

const ADDRESS_TYPES = "UNSPEC,UNICAST,LOCAL,BROADCAST,ANYCAST,MULTICAST,BLACKHOLE,UNREACHABLE,PROHIBIT,THROW,NAT,XRESOLVE".split(",");

/** Types that are known without a route; others can't be judged. */
const SURE_TYPES: ReadonlySet<string> = new Set(["LOCAL", "UNICAST", "MULTICAST"]);

/** Whether an address is of one of these types, or in IPv6 of all. @source linux net/netfilter/xt_addrtype.c match_type6 */
function isOfTypes(address: string, family: IPFamily, isLocal: boolean, types: readonly string[]): boolean | undefined {
  const isMulticast = family === "IPv6" ? address.startsWith("ff") : /^(?:22[4-9]|23\d)\./.test(address);
  const isType: Readonly<Record<string, boolean>> = { LOCAL: isLocal, MULTICAST: isMulticast, UNICAST: !isMulticast };
  const answers = types.map((type) => isType[type]);
  if (family === "IPv6") return answers.includes(false) ? false : answers.includes(undefined) ? undefined : true;
  const is = isLocal ? "LOCAL" : address === "255.255.255.255" ? "BROADCAST" : isMulticast ? "MULTICAST" : "UNICAST";
  return types.includes(is) || (is === "UNICAST" && types.some((type) => !SURE_TYPES.has(type)) ? undefined : false);
}

const typed = (name: string, of: "source" | "destination"): OptionSpec => ({
  name,
  isInvertible: true,
  read(text) {
    const types = readWords(text, ADDRESS_TYPES);
    const test: Test = ({ [of]: address, family, isLocal }) => {
      const isOwn = address === undefined ? undefined : isLocal(address);
      return isOwn === undefined || address === undefined ? undefined : isOfTypes(address, family, isOwn, types);
    };
    return { text: types.join(","), test };
  },
});

const nfacct: MatchKind = {
  name: "nfacct",
  options: [{ name: "nfacct-name", isRequired: true, read: (text) => ({ text, test: UNKNOWN }) }],
  // Nothing here makes such counters, so there are none.
  part: () => ({ isMissing: true }),
};

const SET_NAME_MAX = 31;
const DIRECTIONS_MAX = 6;

const set: MatchKind = {
  name: "set",
  needsOption: true,
  options: [
    {
      name: "match-set",
      values: 2,
      isInvertible: true,
      read(name, { family, familyOfSet }, words) {
        if (name.length > SET_NAME_MAX) throw badRule(`setname \`${name}' too long, max ${SET_NAME_MAX} characters.`);
        const found = familyOfSet === undefined ? "any" : familyOfSet(name);
        if (found === undefined) throw badRule(`Set ${name} doesn't exist.\n`);
        if (found !== "any" && found !== family)
          throw badRule(`The protocol family of set ${name} is ${found}, which is not applicable.\n`);
        const directions = words.split(",").filter((word) => word === "src" || word === "dst");
        if (directions.join(",") !== words || directions.length > DIRECTIONS_MAX) throw badRule(`bad directions ${words}`);
        return { text: `${name} ${words}`, test: (packet) => packet.isInSet(name, packet, directions) };
      },
    },
  ],
  part: (given) => {
    const name = given.get("match-set")?.words[0];
    return name === undefined ? {} : { set: name };
  },
};

const bridged = (name: string, test: Test): OptionSpec => ({
  name,
  values: 0,
  isInvertible: true,
  read: () => ({ text: "", test: (packet) => (packet.hasBridges === false ? false : test(packet)) }),
});

function any(answers: readonly (boolean | undefined)[]): boolean | undefined {
  return answers.includes(true) ? true : answers.includes(undefined) ? undefined : false;
}

/** Whether the packet came in by the device that answers to it leave by. */
const rpfilter: MatchKind = {
  name: "rpfilter",
  isLoose: true,
  options: ["loose", "validmark", "accept-local", "invert"].map((name) => ({ name, values: 0 })),
  part: (given) => ({
    tests: [({ isAnsweredThere }) => (isAnsweredThere === undefined ? undefined : isAnsweredThere !== given.has("invert"))],
  }),
};

/** What a message of ICMP on a connection's way is: that a packet is too large. */
const icmp = (name: string, option: string, types: readonly string[]): MatchKind => ({
  name,
  isLoose: true,
  options: [asks(option, (_, text) => types.includes(text))],
});

/** The matches that are known, by name. Protocols that have no match of their own name one here. */
export const MATCHES: ReadonlyMap<string, MatchKind> = new Map(
  [
    comment,
    portMatch(
      "tcp",
      { name: "tcp-flags", values: 2, isInvertible: true, read: (mask, _, wanted) => readFlags(mask, wanted) },
      { name: "syn", printedAs: "tcp-flags", values: 0, isInvertible: true, read: () => readFlags("FIN,SYN,RST,ACK", "SYN") },
    ),
    portMatch("udp"),
    portMatch("sctp"),
    portMatch("dccp"),
    portMatch("udplite"),
    { name: "addrtype", needsOption: true, options: [typed("src-type", "source"), typed("dst-type", "destination")] },
    ...CONNECTION_MATCHES,
    nfacct,
    set,
    {
      name: "physdev",
      needsOption: true,
      options: [bridged("physdev-is-in", UNKNOWN), bridged("physdev-is-out", UNKNOWN), bridged("physdev-is-bridged", isBridged)],
    },
    {
      name: "iprange",
      isLoose: true,
      options: [
        asks("src-range", ({ source }, text) => isAddressIn(source, text)),
        asks("dst-range", ({ destination }, text) => isAddressIn(destination, text)),
      ],
    },
    {
      name: "multiport",
      isLoose: true,
      options: [
        asks("sports", ({ sourcePort }, text) => isPortIn(sourcePort, text)),
        asks("dports", ({ destinationPort }, text) => isPortIn(destinationPort, text)),
        asks("ports", ({ sourcePort, destinationPort }, text) => any([isPortIn(sourcePort, text), isPortIn(destinationPort, text)])),
      ],
    },
    // What is for a Service is for one host.
    { name: "pkttype", isLoose: true, options: [asks("pkt-type", (_, text) => text === "unicast" || text === "host")] },
    rpfilter,
    icmp("icmp", "icmp-type", ["3", "3/4", "destination-unreachable", "fragmentation-needed", "any"]),
    icmp("icmp6", "icmpv6-type", ["2", "packet-too-big"]),
  ].map((match) => [match.name, match]),
);

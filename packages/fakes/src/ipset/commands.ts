import type { IPFamily } from "@turnout/core";
import { SET_NAME_MAX } from "@turnout/host/ipset/text";
import type { SetType } from "@turnout/host/ipset/text";
import { isMadeAlike, PARTS, savedText } from "./fake-set.ts";
import type { FakeSet } from "./fake-set.ts";
import { readEntry } from "./read-entry.ts";
import { IpsetRefusal, kernel, syntax, usage, WORDS } from "./refusal.ts";

const DEFAULT_MAX_ENTRIES = 65_536;
const DEFAULT_HASH_SIZE = 1_024;
const SMALLEST_HASH = 64;

/** What commands work on. */
export interface CommandHost {
  readonly sets: Map<string, FakeSet>;
  /** Whether a rule names a set. */
  isNamed(name: string): boolean;
  /** Whether the kernel is short of memory for an entry. */
  isRefused(entry: string): boolean;
}

/** How a change is taken back. */
export type Undo = () => void;

/** A command that was understood: what it prints, and what is left to do with the kernel. */
export interface Command {
  /** Commands of one group go to the kernel together; undefined: at once. */
  readonly group: string | undefined;
  /** Do it. @throws {IpsetRefusal} `kernel`. */
  run(host: CommandHost): { readonly printed: string; readonly undo?: Undo };
}

const DONE = { printed: "" };

/** Understand the words of one command. @throws {IpsetRefusal}. */
export function readCommand(all: readonly string[], host: CommandHost, isLenient: boolean): Command {
  const isForgiving = isLenient || all.some(isExist);
  const [verb = "", name, ...rest] = all.filter((word) => !isExist(word));
  switch (verb) {
    case "create":
      return create(mustName(verb, name), rest, isForgiving);
    case "add":
    case "del":
      return entryCommand(verb, mustName(verb, name), rest, isForgiving, host);
    case "test":
      return test(mustName(verb, name), second(verb, rest), host);
    case "destroy":
    case "flush":
    case "save":
    case "list":
      return ofSet(verb, name, isForgiving);
    case "swap":
      return swap(mustName(verb, name), second(verb, rest));
    default:
      throw usage(`No command specified: unknown argument ${verb}`);
  }
}

function isExist(word: string): boolean {
  return word === "-exist" || word === "-!";
}

function mustName(verb: string, name: string | undefined): string {
  if (name === undefined) throw usage(`Missing mandatory argument to command ${verb}`);
  if (name.length > SET_NAME_MAX) throw syntax(`setname '${name}' is longer than ${SET_NAME_MAX} characters`);
  return name;
}

function second(verb: string, [word]: readonly string[]): string {
  if (word === undefined) throw usage(`Missing second mandatory argument to command ${verb}`);
  return word;
}

function setOf({ sets }: CommandHost, name: string): FakeSet {
  const set = sets.get(name);
  if (set === undefined) throw kernel(WORDS.noSet);
  return set;
}

/** The tool asks for the set's type before it reads an entry: this comes before what was collected is handed over. */
function knownSet({ sets }: CommandHost, name: string): FakeSet {
  const set = sets.get(name);
  if (set === undefined) throw new IpsetRefusal("syntax", WORDS.noSet);
  return set;
}

function create(name: string, words: readonly string[], isForgiving: boolean): Command {
  const type = second("create", words);
  if (!Object.hasOwn(PARTS, type)) throw syntax(`typename '${type}' is unknown`);
  const options = readOptions(words.slice(1));
  const isBitmap = type === "bitmap:port";
  const range = options.get("range");
  if (isBitmap && range === undefined) throw usage("Mandatory option `range' is missing");
  if (isBitmap && range !== "0-65535") throw usage(`the fake has one range of ports, 0-65535, not ${range}`);
  const family: IPFamily = options.get("family") === "inet6" ? "IPv6" : "IPv4";
  const set: FakeSet = {
    type: type as SetType,
    family,
    hashSize: hashSize(Number(options.get("hashsize") ?? DEFAULT_HASH_SIZE)),
    maxEntries: isBitmap ? Number.POSITIVE_INFINITY : Number(options.get("maxelem") ?? DEFAULT_MAX_ENTRIES),
    hasCounters: options.has("counters"),
    hasComments: options.has("comment"),
    entries: new Map(),
  };
  return {
    group: undefined,
    run({ sets }) {
      const found = sets.get(name);
      if (found !== undefined && !(isForgiving && isMadeAlike(found, set))) throw kernel(WORDS.setExists);
      if (found === undefined) sets.set(name, set);
      return DONE;
    },
  };
}

/** The kernel rounds up to a power of two. */
function hashSize(wanted: number): number {
  return Math.max(SMALLEST_HASH, 2 ** Math.ceil(Math.log2(Math.max(wanted, 1))));
}

const VALUED = ["family", "hashsize", "maxelem", "range"];

function readOptions(words: readonly string[]): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const isValued = VALUED.includes(word);
    if (!isValued && word !== "counters" && word !== "comment") throw usage(`Unknown argument: \`${word}'`);
    const value = isValued ? words[++at] : "";
    if (value === undefined) throw usage(`Missing mandatory argument of option \`${word}'`);
    options.set(word, value);
  }
  return options;
}

function entryCommand(verb: "add" | "del", name: string, words: readonly string[], isForgiving: boolean, host: CommandHost): Command {
  const text = second(verb, words);
  const read = readEntry(text, knownSet(host, name));
  const comment = words[1] === "comment" ? (words[2] ?? "") : "";
  return {
    group: `${verb} ${name}`,
    run(now) {
      const { entries, maxEntries } = setOf(now, name);
      const entry = read();
      const before = entries.get(entry);
      if (verb === "del") {
        if (before === undefined && !isForgiving) throw kernel(WORDS.noEntry);
        entries.delete(entry);
        return { printed: "", undo: () => void (before !== undefined && entries.set(entry, before)) };
      }
      if (now.isRefused(text)) throw kernel("Kernel error received: Cannot allocate memory");
      if (before !== undefined && !isForgiving) throw kernel(WORDS.entryExists);
      if (before === undefined && entries.size >= maxEntries) throw kernel(WORDS.full);
      entries.set(entry, comment);
      return { printed: "", undo: () => void (before === undefined ? entries.delete(entry) : entries.set(entry, before)) };
    },
  };
}

function test(name: string, text: string, host: CommandHost): Command {
  const read = readEntry(text, knownSet(host, name));
  return {
    group: undefined,
    run(now) {
      if (!setOf(now, name).entries.has(read())) throw kernel(`${text} is NOT in set ${name}.`);
      return DONE;
    },
  };
}

function ofSet(verb: "destroy" | "flush" | "save" | "list", name: string | undefined, isForgiving: boolean): Command {
  return {
    group: undefined,
    run(host) {
      if (verb === "destroy" && isForgiving && name !== undefined && !host.sets.has(name)) return DONE;
      if (verb === "list" && (name === "-name" || name === "-n"))
        return { printed: [...host.sets.keys()].map((one) => `${one}\n`).join("") };
      if (verb === "list") throw usage("the fake lists names alone: what is in a set says save");
      const names = name === undefined ? [...host.sets.keys()] : [name];
      const sets = names.map((one) => [one, setOf(host, one)] as const);
      if (verb === "save") return { printed: sets.map(([one, set]) => savedText(one, set)).join("") };
      if (verb === "destroy" && names.some((one) => host.isNamed(one))) throw kernel(WORDS.inUse);
      for (const [one, { entries }] of sets) {
        if (verb === "flush") entries.clear();
        else host.sets.delete(one);
      }
      return DONE;
    },
  };
}

function swap(name: string, other: string): Command {
  return {
    group: undefined,
    run(host) {
      const one = setOf(host, name);
      const two = host.sets.get(other);
      if (two === undefined) throw kernel(WORDS.noSecond);
      if (one.type !== two.type || one.family !== two.family) throw kernel(WORDS.otherType);
      host.sets.set(name, two);
      host.sets.set(other, one);
      return DONE;
    },
  };
}

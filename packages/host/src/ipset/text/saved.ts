import { parseIP } from "@turnout/core";

/** A set as `ipset save` prints it. */
export interface SavedSet {
  /** e.g. `hash:ip,port`; may be one that Turnout never makes. */
  readonly type: string;
  /** The words after the type, to be compared with {@link optionsOf}, in the order in which they were printed. */
  readonly options: string;
  /** In canonical spelling, and in no order that means something. */
  readonly entries: readonly string[];
}

/** Words that say nothing of what a set is: how the kernel stores it. */
const STORAGE = /(?: hashsize \d+| bucketsize \d+| initval 0x[\da-f]+)/g;

/**
 * Read what `ipset save` printed, by name.
 *
 * Edges: what entries have besides themselves (counters, comments, timeouts) is left out; options that a set of ours never has stay in
 * `options`, so that it equals none of ours. IPv6 addresses are in canonical form, whatever the C library made of them. Never throws.
 */
export function readSaved(text: string): ReadonlyMap<string, SavedSet> {
  const sets = new Map<string, { readonly type: string; readonly options: string; readonly entries: string[] }>();
  for (const line of text.split("\n")) {
    const [verb, name = "", word = ""] = line.split(" ", 3);
    if (verb === "add") sets.get(name)?.entries.push(word.includes(":") ? canonicalEntry(word) : word);
    else if (verb === "create")
      sets.set(name, { type: word, options: optionsIn(line.slice(`create ${name} ${word}`.length)), entries: [] });
  }
  return sets;
}

function optionsIn(words: string): string {
  return words.replace(STORAGE, "").trim();
}

/** The C library writes the last 32 bits of some IPv6 addresses with dots; nobody else does. What means an IPv4 address stays as it is. */
function canonicalEntry(entry: string): string {
  if (!/:\d+\.\d+\./.test(entry)) return entry;
  return entry.replace(/[\da-f:]+:\d+\.\d+\.\d+\.\d+/g, (text) => (text.startsWith("::ffff:") ? text : (parseIP(text)?.text ?? text)));
}

import { ProxyError } from "@turnout/core";

/** A JSON object of `nft -j`. */
type Json = Readonly<Record<string, unknown>>;

/** A chain, as it was listed. */
export interface ListedChain {
  /** Where the kernel calls it in: `type nat hook prerouting priority -100`; undefined for a chain that only other chains call. */
  readonly hook: string | undefined;
  /** A base chain's policy is to drop. */
  readonly isDropping: boolean;
  /** The comment of each of its rules, in order; "" for one without. */
  readonly comments: readonly string[];
}

/** What was listed, by name; elements are as nft printed them. */
export interface Listing {
  /** Sets and maps, with their elements. */
  readonly sets: ReadonlyMap<string, readonly unknown[]>;
  readonly chains: ReadonlyMap<string, ListedChain>;
}

/**
 * Read what `nft -j list` printed of one table or of a set.
 *
 * Edges: names are not told apart by table, so give it one table's listing at a time.
 * @throws {ProxyError} `tool_failed` when the text isn't such a listing.
 */
export function readListing(text: string): Listing {
  return readingListing(() => listingOf(((JSON.parse(text) as Json)["nftables"] ?? []) as readonly Json[]));
}

/**
 * Read a part of a listing: its forms are nft's, and another version's may be others.
 * @throws {ProxyError} `tool_failed` for whatever `read` throws.
 */
export function readingListing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const hint = "is this nft newer than those that Turnout was tested with?";
    throw ProxyError.from(error, "tool_failed", "what nft listed can't be read", { hint });
  }
}

function listingOf(entries: readonly Json[]): Listing {
  const sets = new Map<string, readonly unknown[]>();
  const chains = new Map<string, ListedChain & { readonly comments: string[] }>();
  for (const entry of entries) {
    const [chain, rule] = [entry["chain"], entry["rule"]] as readonly (Json | undefined)[];
    const set = (entry["set"] ?? entry["map"]) as Json | undefined;
    if (set !== undefined) sets.set(String(set["name"]), (set["elem"] ?? []) as readonly unknown[]);
    if (chain !== undefined)
      chains.set(String(chain["name"]), { hook: hookOf(chain), isDropping: chain["policy"] === "drop", comments: [] });
    if (rule !== undefined) chains.get(String(rule["chain"]))?.comments.push(textOf(rule["comment"]));
  }
  return { sets, chains };
}

function hookOf({ type, hook, prio }: Json): string | undefined {
  return hook === undefined ? undefined : `type ${textOf(type)} hook ${textOf(hook)} priority ${String(prio)}`;
}

/** The parts of an element's key or value, each as text. */
export function elementParts(element: unknown): readonly string[] {
  if (typeof element !== "object" || element === null) return [String(element)];
  const wrapped = (element as Json)["elem"] as Json | undefined;
  if (wrapped !== undefined) return elementParts(wrapped["val"]);
  return ((element as Json)["concat"] as readonly unknown[]).map(String);
}

/** An element's key or value, as nft's language writes it. */
export function elementText(element: unknown): string {
  return elementParts(element).join(" . ");
}

/** An element's comment; "" for one without. */
export function elementComment(element: unknown): string {
  // One with a comment or a timeout is wrapped.
  const wrapper = ((element as Json)["elem"] ?? {}) as Json;
  return textOf(wrapper["comment"]);
}

/** What a verdict map's element leads to, as nft's language writes it: `goto x`, `drop`. */
export function verdictText(verdict: unknown): string {
  const [word, detail] = Object.entries(verdict as Json)[0] ?? ["", undefined];
  const target = textOf((detail as Json | null | undefined)?.["target"]);
  return target === "" ? word : `${word} ${target}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

import { clipped } from "../rules/values.ts";

/** What nft 1.0.6 leaves out of JSON. */
export interface ShownTable {
  /** Rules in nft's own words, by their handles. */
  readonly texts: ReadonlyMap<string, string>;
  /** The devices of hooks, by the names of chains. */
  readonly devices: ReadonlyMap<string, readonly string[]>;
}

/** Read what `nft -a -t list table` printed. Pure. */
export function readShownTable(shown: string): ShownTable {
  return { texts: textsByHandle(shown), devices: devicesByChain(shown) };
}

/** Take rules out of what `nft -a -t list table` printed, by their handles, which no two of a table share. Pure. */
export function textsByHandle(shown: string): ReadonlyMap<string, string> {
  const rules = [...shown.matchAll(/^\t+(?!(?:chain|set|map|flowtable|ct \w+|counter|quota|limit) \S+ \{)(.+) # handle (\d+)$/gm)];
  return new Map(rules.map(([, text = "", handle = ""]) => [handle, clipped(text)]));
}

function devicesByChain(shown: string): ReadonlyMap<string, readonly string[]> {
  const chains = shown.matchAll(
    /^\tchain (\S+) \{.*\n(?:\t\tcomment .*\n)?\t\ttype \S+ hook \S+ devices? (?:= \{ ([^}]*) \}|(\S+)) priority/gm,
  );
  return new Map(
    Array.from(chains, ([, chain = "", several, one = ""]) => [
      chain,
      (several ?? one).split(", ").map((name) => name.replaceAll('"', "")),
    ]),
  );
}

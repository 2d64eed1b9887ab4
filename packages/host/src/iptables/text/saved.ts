import { parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { MISPLACED } from "./objects.ts";
import type { RuleObject, SharedObject } from "./objects.ts";

/**
 * Read one table of what `iptables-save` printed: rules by chain, without `-A CHAIN`, in their order.
 *
 * Shape: only the chains that `isWanted` names; the rules of others are not looked at, because a newer tool's may not even be readable
 * (k/k#112477). A chain without rules is there as well.
 * Edges: IPv6 addresses are in canonical form, whatever the C library made of them. Never throws.
 */
export function readSaved(text: string, family: IPFamily, isWanted: (chain: string) => boolean): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    if (line.startsWith(":")) {
      const name = line.slice(1, line.indexOf(" "));
      if (isWanted(name)) chains.set(name, []);
    } else if (line.startsWith("-A ")) {
      const end = line.indexOf(" ", 3);
      const name = end < 0 ? line.slice(3) : line.slice(3, end);
      const rule = end < 0 ? "" : line.slice(end + 1).trimEnd();
      chains.get(name)?.push(family === "IPv6" ? canonicalAddresses(rule) : rule);
    }
  }
  return chains;
}

/** A rule, and how many packets it matched since it was written. */
export interface CountedRule {
  readonly rule: string;
  readonly packets: number;
}

/** Read what rules matched out of what `iptables-save -c` printed of one table: by chain, in their order, as {@link readSaved} has them. Never throws. */
export function readCounted(
  text: string,
  family: IPFamily,
  isWanted: (chain: string) => boolean,
): ReadonlyMap<string, readonly CountedRule[]> {
  const counts = new Map<string, number[]>();
  const plain = text.replaceAll(/^\[(\d+):\d+\] (?=-A (\S+))/gm, (_line, packets: string, chain: string) => {
    const known = counts.get(chain);
    if (known === undefined) counts.set(chain, [Number(packets)]);
    else known.push(Number(packets));
    return "";
  });
  const chains = readSaved(plain, family, isWanted);
  return new Map(
    [...chains].map(([chain, rules]) => [chain, rules.map((rule, index) => ({ rule, packets: counts.get(chain)?.[index] ?? 0 }))]),
  );
}

/** The C library writes the last 32 bits of some IPv6 addresses with dots; we never do. */
function canonicalAddresses(rule: string): string {
  if (!/:\d+\.\d+\./.test(rule)) return rule;
  return rule.replace(/[0-9a-f:]+:\d+\.\d+\.\d+\.\d+/g, (text) => parseIP(text)?.text ?? text);
}

/**
 * Read a shared chain as objects: its tail (the rules that `isTail` names), and each of the other rules.
 *
 * Edges: every rule counts as ours, so that what somebody else put there goes; a tail that isn't last is marked as {@link MISPLACED}.
 */
export function sharedObjects(
  key: string,
  rules: readonly string[],
  isTail: (rule: string) => boolean,
): readonly (SharedObject | RuleObject)[] {
  const tail: string[] = [];
  const counts = new Map<string, number>();
  let isLast = true;
  for (const rule of rules) {
    if (isTail(rule)) tail.push(rule);
    else {
      isLast &&= tail.length === 0;
      counts.set(rule, (counts.get(rule) ?? 0) + 1);
    }
  }
  const value = [...(isLast ? [] : [MISPLACED]), ...tail].join("\n");
  return [
    { kind: "shared", key, value },
    ...Array.from(counts, ([rule, count]): RuleObject => ({ kind: "rule", key: `${key} ${rule}`, value: count })),
  ];
}

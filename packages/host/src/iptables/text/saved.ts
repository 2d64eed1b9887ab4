import { parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { MISPLACED, rulesOf } from "./objects.ts";
import type { RuleObject, SharedObject } from "./objects.ts";

/**
 * Read one table of what `iptables-save` printed: rules by chain, a line each, without `-A CHAIN`, in their order.
 *
 * Shape: only the chains that `isWanted` names; the rules of others are not looked at, because a newer tool's may not even be readable
 * (k/k#112477). A chain without rules is there as well, as "". The lines of one chain are cut out together: there are half a million in large tables.
 * Edges: IPv6 addresses are in canonical form, whatever the C library made of them. A rule that has no match and no target, at the head of a chain, is
 * left out: it does nothing. Never throws.
 */
export function readSaved(text: string, family: IPFamily, isWanted: (chain: string) => boolean): ReadonlyMap<string, string> {
  const chains = new Map<string, string>();
  for (let at = 0, end = 0; at < text.length; at = end + 1) {
    end = endOfLine(text, at);
    if (text.startsWith(":", at)) {
      const name = text.slice(at + 1, text.indexOf(" ", at));
      if (isWanted(name)) chains.set(name, "");
    } else if (text.startsWith("-A ", at)) {
      const space = text.indexOf(" ", at + 3);
      const isBare = space < 0 || space > end;
      const name = text.slice(at + 3, isBare ? end : space);
      const head = `-A ${name} `;
      while (!isBare && text.startsWith(head, end + 1)) end = endOfLine(text, end + 1);
      const known = chains.get(name);
      if (known === undefined) continue;
      const rules = isBare ? "" : rulesIn(text.slice(at + head.length, end).replaceAll(`\n${head}`, "\n"), family);
      chains.set(name, known === "" ? rules : `${known}\n${rules}`);
    }
  }
  return chains;
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

/** Older tools end lines with a space. */
function rulesIn(lines: string, family: IPFamily): string {
  const rules = lines.endsWith(" ") || lines.includes(" \n") ? lines.replaceAll(/ +$/gm, "") : lines;
  return family === "IPv6" ? canonicalAddresses(rules) : rules;
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
    [...chains].map(([chain, rules]) => [chain, rulesOf(rules).map((rule, index) => ({ rule, packets: counts.get(chain)?.[index] ?? 0 }))]),
  );
}

/** The C library writes the last 32 bits of some IPv6 addresses with dots; we never do. */
function canonicalAddresses(rules: string): string {
  if (!/:\d+\.\d+\./.test(rules)) return rules;
  return rules.replace(/[0-9a-f:]+:\d+\.\d+\.\d+\.\d+/g, (text) => parseIP(text)?.text ?? text);
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

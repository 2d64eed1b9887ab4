import type { IPFamily } from "@turnout/core";
import type { SetType } from "@turnout/host/ipset/text";

/** A set of the fake. */
export interface FakeSet {
  readonly type: SetType;
  /** A `bitmap:port` has IPv4, which means nothing. */
  readonly family: IPFamily;
  readonly hashSize: number;
  readonly maxEntries: number;
  readonly hasCounters: boolean;
  readonly hasComments: boolean;
  /** As saved; and the comment of each, "" for none. */
  readonly entries: Map<string, string>;
}

/** Parts of the entries of each type, in order. */
export const PARTS: Readonly<Record<SetType, readonly ("ip" | "port" | "net")[]>> = {
  "hash:ip": ["ip"],
  "hash:ip,port": ["ip", "port"],
  "hash:ip,port,ip": ["ip", "port", "ip"],
  "hash:ip,port,net": ["ip", "port", "net"],
  "bitmap:port": ["port"],
};

/** Tell whether somebody made a set in the way of this one: what `-exist` forgives. The kernel looks at no family and no hash size here. */
export function isMadeAlike(one: FakeSet, other: FakeSet): boolean {
  const isSame = one.type === other.type && one.hasCounters === other.hasCounters && one.hasComments === other.hasComments;
  return isSame && one.maxEntries === other.maxEntries;
}

/** Print a set as `ipset save` does. Numbers that only the kernel knows are made up. */
export function savedText(name: string, set: FakeSet): string {
  const { type, family, hashSize, maxEntries, hasCounters, hasComments, entries } = set;
  const extras = `${hasCounters ? " counters" : ""}${hasComments ? " comment" : ""}`;
  const hash = `family ${family === "IPv4" ? "inet" : "inet6"} hashsize ${hashSize} maxelem ${maxEntries}${extras} bucketsize 12 initval 0x5eed5eed`;
  const lines = [`create ${name} ${type} ${type === "bitmap:port" ? `range 0-65535${extras}` : hash}`];
  const sorted = type === "bitmap:port" ? [...entries].toSorted(([a], [b]) => Number(a) - Number(b)) : entries;
  for (const [entry, comment] of sorted) {
    lines.push(`add ${name} ${entry}${hasCounters ? " packets 0 bytes 0" : ""}${comment === "" ? "" : ` comment "${comment}"`}`);
  }
  return `${lines.join("\n")}\n`;
}

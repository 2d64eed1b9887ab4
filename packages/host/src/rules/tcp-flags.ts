import type { PartlyKnown } from "./rule.ts";

const ALL: readonly string[] = ["fin", "syn", "rst", "psh", "ack", "urg"];

/** The TCP flags of what opens a connection, and of the first answer; undefined: it is not TCP, or not known to be. Pure. */
export function flagsOf({ protocol, state }: PartlyKnown): readonly string[] | undefined {
  if (protocol !== "tcp") return undefined;
  return state === "new" ? ["syn"] : ["syn", "ack"];
}

/** Whether of the flags in a mask a packet has these and no others; `all` and `none` are iptables' words. Pure. */
export function hasFlags(packet: PartlyKnown, mask: readonly string[], wanted: readonly string[]): boolean | undefined {
  if (packet.protocol === undefined) return undefined;
  const flags = flagsOf(packet);
  if (flags === undefined) return false;
  const looked = mask.includes("all") ? ALL : mask;
  const asked = wanted.includes("all") ? ALL : wanted;
  return looked.every((flag) => flags.includes(flag) === asked.includes(flag));
}

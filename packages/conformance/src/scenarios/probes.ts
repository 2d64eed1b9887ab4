import type { IPFamily } from "@turnout/core";
import { STAGE_NODE, stagePeer } from "../runner/stage.ts";
import type { Probe } from "../runner/scenario.ts";

/** What a probe may say besides from where, to what and what it sees. */
export type ProbeExtras = Omit<Probe, "from" | "to" | "sees">;

/** The ways to a Service called `web` from outside. */
export const OUTSIDE_WAYS: readonly string[] = ["web nodePort@node1", "web externalIP", "web loadBalancerIP"];
/** All ways to it. */
export const EVERY_WAY: readonly string[] = ["web clusterIP", ...OUTSIDE_WAYS];

/** Places of all kinds whose packets reach node1 in the laboratory too, whatever they ask for. */
export const EVERY_CLIENT = "pod-1-3 node1 client1";

/** Write the probe of every one of some places (their names, by blanks) to every one of some addresses, all of which see the same. */
export function asks(from: string, to: Probe["to"] | readonly Probe["to"][], sees: string, extras: ProbeExtras = {}): readonly Probe[] {
  const targets = Array.isArray(to) ? (to as readonly Probe["to"][]) : [to as Probe["to"]];
  return from.split(" ").flatMap((place) => targets.map((target) => ({ from: place, to: target, sees, ...extras })));
}

/** As {@link asks}, where each is seen by the servers under its own name. */
export function asksUnmasked(
  from: string,
  to: Probe["to"] | readonly Probe["to"][],
  servers: string,
  extras: ProbeExtras = {},
): readonly Probe[] {
  return from.split(" ").flatMap((place) => asks(place, to, `${servers} saw ${place}`, extras));
}

/** node1's own addresses, for packets to node ports of Services that have none (any more). */
export const NODE1: Readonly<Record<IPFamily, string>> = stagePeer(STAGE_NODE).addresses;

/** The node port a Service of a number has. */
export function nodePortOf(number: number): number {
  return 30_000 + number;
}

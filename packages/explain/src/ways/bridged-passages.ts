import type { HookedWay } from "./hooked-way.ts";
import type { Passage } from "./passage.ts";
import type { HookedPacket } from "@turnout/host/rules";

/** A packet where it comes in, and where it leaves: not yet translated, and no more. */
export interface Ends {
  readonly coming: HookedPacket;
  readonly leaving: HookedPacket;
}

/** By a port of a bridge; "": by none. */
interface Devices {
  readonly from: string;
  readonly to: string;
}

/**
 * Put the hooks of bridges around those of IP. Pure.
 *
 * Edges: by which port of a bridge a packet goes is not known, so rules about ports can't be judged. From port to port of one bridge it is forwarded
 * there, also where it is translated on the way.
 * @source linux net/bridge/br_netfilter_hooks.c br_nf_pre_routing_finish
 */
export function withBridges(
  passages: readonly Passage[],
  { coming, leaving }: Ends,
  { from, to }: Devices,
  sent: Pick<Passage, "isAnswer">,
  { isBridge = () => false, isLost = false }: HookedWay,
): readonly Passage[] {
  const at = (hook: string, packet: HookedPacket, isPastOurs: boolean): Passage => ({
    ...sent,
    at: hook,
    layer: "bridge",
    isPastOurs,
    packet: { ...packet, inDevice: undefined, outDevice: undefined },
  });
  const entry = isBridge(from) ? [at("prerouting", coming, sent.isAnswer)] : [];
  if (from !== "" && from === to && isBridge(from))
    return [...entry, ...passages, at("forward", leaving, true), at("postrouting", leaving, true)];
  return [
    ...entry,
    ...(isBridge(from) ? [at("input", coming, sent.isAnswer)] : []),
    ...passages,
    ...(isBridge(to) && !isLost ? [at("output", leaving, true), at("postrouting", leaving, true)] : []),
  ];
}

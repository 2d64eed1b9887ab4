import type { AskedPacket, Cause } from "@turnout/core";
import { isBridgeCalling } from "./bridge-causes.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/**
 * Say that a bridge does not send a pod's packet back by the port that it came in by. Pure.
 *
 * Edges: where bridges don't call IP's rules, packets are routed, and come out of the bridge as the host's own. Nor does it matter where the bridge takes in
 * everything (kubelet's promiscuous-bridge).
 * @source linux net/bridge/br_forward.c should_deliver, br_netfilter_hooks.c br_nf_pre_routing_finish
 */
export function hairpinCauses({ family, source, device }: AskedPacket, { endpoint, there }: Way, facts: WayFacts): readonly Cause[] {
  const { links, senderPort } = facts;
  const bridge = links.get(device);
  if (endpoint.ip !== source || there.is !== "way" || there.device !== device || bridge === undefined || senderPort === undefined)
    return [];
  if (senderPort.isHairpin !== false || bridge.isPromiscuous === true || !isBridgeCalling(bridge, family, facts)) return [];
  return [
    {
      id: "hairpin_off",
      says: `the pod asks itself by the Service, and ${device} does not send packets back by ${senderPort.name}, by which they came in (hairpin is off)`,
      show: [`bridge -d link show dev ${senderPort.name}`],
      fix: "switch it on; have the CNI do so for each pod (hairpinMode)",
      commands: [`bridge link set dev ${senderPort.name} hairpin on`],
    },
  ];
}

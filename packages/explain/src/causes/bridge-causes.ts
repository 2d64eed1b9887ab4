import type { AskedPacket, Cause, IPFamily } from "@turnout/core";
import type { Link } from "../readings/links.ts";
import { bridgeParameter } from "../ways/way-facts.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/**
 * Say that answers from one port of a bridge to another pass no rules. Pure, and only about packets that conntrack or IPVS translates.
 *
 * Edges: with masquerade answers are for this host, which sees them. Behind a next hop they don't come by this bridge's ports alone.
 * @source linux net/bridge/br_netfilter_hooks.c br_nf_pre_routing
 */
export function bridgeCauses(
  { family, device, source }: AskedPacket,
  { endpoint, there, back }: Way,
  { links, parameters }: WayFacts,
): readonly Cause[] {
  const bridge = links.get(device)?.bridge;
  if (bridge === undefined || endpoint.masquerade || there.is !== "way" || back?.is !== "way") return [];
  const isOnIt = [there, back].every((route) => route.device === device && route.nextHop === undefined && !route.isLocal);
  if (!isOnIt || isBridgeCalling({ bridge }, family, { parameters })) return [];
  const path = bridgeParameter(family);
  const called = parameters.get(path);
  const name = `net.${path.replaceAll("/", ".")}`;
  const because = called === undefined ? "br_netfilter is not loaded" : `${name} is ${called}`;
  return [
    {
      id: "bridge_not_called",
      says: `${source} and ${endpoint.ip} are both on the bridge ${device}, and ${because}: the answer goes from port to port as it is, nobody puts the Service's address back, and the client does not know it`,
      show:
        called === undefined ? ["lsmod | grep br_netfilter", `ip -d link show ${device}`] : [`sysctl ${name}`, `ip -d link show ${device}`],
      fix: `have bridges pass what goes from port to port to the rules, and keep it so: ${called === undefined ? "/etc/modules-load.d and " : ""}/etc/sysctl.d`,
      commands: [...(called === undefined ? ["modprobe br_netfilter"] : []), `sysctl -w ${name}=1`],
    },
  ];
}

/** Tell whether what goes from port to port of a bridge passes the rules of a family. Pure. */
export function isBridgeCalling({ bridge }: Pick<Link, "bridge">, family: IPFamily, { parameters }: Pick<WayFacts, "parameters">): boolean {
  return parameters.get(bridgeParameter(family)) === "1" || bridge?.[family] === true;
}

import { cidrContains, parseCIDR, parseIP, parseQuestion } from "@turnout/core";
import type { AskedPacket } from "@turnout/core";
import { UPLINK } from "@turnout/conformance";
import type { Cluster } from "./cluster.ts";
import type { PlaygroundState } from "./state.ts";

/** By which a pod of the node comes in; the hosts in memory have a pod behind it. */
const POD_DEVICE = "veth1";

/** Read the question, and tell by which device the packet comes in; undefined: none is asked. Pure. @throws {ProxyError} `invalid_object` naming what can't be read. */
export function packetOf(state: PlaygroundState, cluster: Cluster): AskedPacket | undefined {
  if (state.to.trim() === "") return undefined;
  const { from, ...asked } = parseQuestion({ from: state.from.trim(), to: state.to.trim(), protocol: "tcp" });
  const own = cluster.hostAddresses[asked.family];
  if (from === "host") return { ...asked, source: own[1] ?? own[0] ?? "", device: "" };
  if (own.includes(from)) return { ...asked, source: from, device: "" };
  return { ...asked, source: from, device: isPodHere(from, cluster) ? POD_DEVICE : UPLINK, isDeviceAssumed: true };
}

function isPodHere(address: string, { changes }: Cluster): boolean {
  const ip = parseIP(address);
  const ranges = [changes.IPv4, changes.IPv6].flatMap(({ node }) => node?.podCIDRs ?? []).flatMap((text) => parseCIDR(text) ?? []);
  const isEndpoint = [changes.IPv4, changes.IPv6].some(({ set }) =>
    set.some(({ endpoints }) => endpoints.some((endpoint) => endpoint.ip === address && endpoint.isLocal)),
  );
  return isEndpoint || (ip !== undefined && ranges.some((range) => cidrContains(range, ip)));
}

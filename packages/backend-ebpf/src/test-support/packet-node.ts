// The packet half at work on the node of network.ts, with endpoints and clients around it.
import { fileURLToPath } from "node:url";
import { nftStatementText } from "@turnout/host/nft-statement";
import { createBpf } from "@turnout/host/bpf";
import type { Bpf, Direction } from "@turnout/host/bpf";
import { renderNftTable } from "../packets/nft-table.ts";
import type { Calls } from "./agent.ts";
import { startAgents } from "./agents.ts";
import { makeNetwork, POD, POD_ENDPOINTS, run } from "./network.ts";
import { place } from "./place.ts";
import { mapChoices, proxyOf, startSockets } from "./proxy.ts";
import type { Proxy } from "./proxy.ts";

/** A node that serves packets. */
export interface PacketNode extends Proxy {
  readonly bpf: Bpf;
  /** Outside. */
  readonly client: Calls;
  /** A pod of this node, an endpoint itself. */
  readonly pod: Calls;
  /** In the node's own network namespace. */
  readonly host: Calls;
  /** How many packets went out to addresses of services, as the client's network namespace sees them. */
  leaks(): number;
}

/** How the programs are loaded and attached. */
export interface Attachment {
  /** The program at the devices of pods. */
  readonly atPods?: "turnout_in" | "turnout_in_pods";
  /** The client and the pods are behind bridges, whose packets conntrack sees before tc does: `net.bridge.bridge-nf-call-iptables=1`. */
  readonly isBridged?: boolean;
  /** Programs of sockets are there, too, for all places, with the same maps. */
  readonly hasSockets?: boolean;
}

/** What the packet half shall never let out. */
const LEAKS = `table inet leaks {
  counter leaked { }
  chain watch {
    type filter hook prerouting priority raw;
    ip daddr { 10.96.0.0/16, 198.51.100.0/24 } counter name leaked drop
    ip6 daddr { fd00:96::/32, fd00:51::/32 } counter name leaked drop
  }
}`;

const SOCKETS = fileURLToPath(new URL("../../dist/programs/sockets.bpf.o", import.meta.url));

/** Maps that are pinned, so that the next object has the same. */
function sharedMaps(): ReturnType<typeof mapChoices> {
  run("mount", ["-t", "bpf", "bpf", "/sys/fs/bpf"]);
  return Object.fromEntries(Object.entries(mapChoices()).map(([name, choice]) => [name, { ...choice, pin: `/sys/fs/bpf/${name}` }]));
}

/** Make the network, load the programs and attach them. */
export async function startNode(
  objectFile: string,
  { atPods = "turnout_in", isBridged = false, hasSockets = false }: Attachment = {},
): Promise<PacketNode> {
  makeNetwork(isBridged);
  run("nft", ["-f", "-"], renderNftTable().map(nftStatementText).join("\n"));
  run("ip", ["netns", "exec", "client", "nft", "-f", "-"], LEAKS);
  const bpf = createBpf();
  const maps = hasSockets ? sharedMaps() : mapChoices();
  const object = await bpf.load(objectFile, { maps });
  if (hasSockets) await startSockets(place.cgroup, SOCKETS, maps);
  const devices = JSON.parse(run("ip", ["-j", "link"])) as readonly { readonly ifname: string; readonly ifindex: number }[];
  const attach = (name: string, direction: Direction, program: string): void => {
    const ifindex = devices.find(({ ifname }) => ifname === name)?.ifindex ?? 0;
    bpf.attachTc(object.program(program), { ifindex, direction }, { priority: 1, handle: 1 });
  };
  attach("outside", "ingress", "turnout_in");
  attach("outside", "egress", "turnout_out");
  attach("pods", "ingress", atPods);
  if (hasSockets) attach("pods", "egress", "turnout_out");
  if (!isBridged) attach("pod", "ingress", atPods);
  const [client, pod, pods, host] = await startAgents(["client", "pod", "pods", "node"]);
  await pods.serve(POD_ENDPOINTS);
  await pod.serve([POD.IPv4, POD.IPv6]);
  return {
    ...proxyOf(object),
    bpf,
    client,
    pod,
    host,
    leaks: () => {
      const text = run("ip", ["netns", "exec", "client", "nft", "list", "counter", "inet", "leaks", "leaked"]);
      return Number(/packets (\d+)/.exec(text)?.[1]);
    },
  };
}

import { hostPort, ProxyError } from "@turnout/core/backend";
import type { FlowFilter, IPFamily } from "@turnout/core/backend";
import type { BpfMap, RemoteEnd } from "@turnout/host/bpf";
import { findStuck } from "./peers.ts";
import type { StuckPeer } from "./peers.ts";
import { decodeAddressFlags } from "../bytes/ranges.ts";
import type { EbpfWorld } from "../world.ts";

/** The maps by their names in C; `asked_udp` and `node_addresses` are looked at. */
export type PeerMaps = ReadonlyMap<string, Pick<BpfMap, "read" | "lookup" | "delete">>;

/**
 * End UDP sockets that are connected to endpoints which are gone; resolves to how many there were. Their programs get an error, and connect again.
 *
 * Edges: sockets that aren't connected ask again with each datagram, and need none of this. Which are connected is known as long as `asked_udp` remembers them.
 * A network namespace whose sockets can't be ended keeps none of the others from it.
 * @throws {ProxyError} at the end, `host_unsupported` where the kernel can't end sockets, `permission_denied` where namespaces can't be entered.
 */
export async function endStuckSockets(
  maps: PeerMaps,
  flows: readonly FlowFilter[],
  family: IPFamily,
  world: Pick<EbpfWorld, "namespaces" | "sockets">,
  signal: AbortSignal,
): Promise<number> {
  const isNodeAddress = (address: Buffer): boolean => {
    const flags = maps.get("node_addresses")?.lookup(address);
    return flags !== undefined && decodeAddressFlags(flags)?.hasNodePorts === true;
  };
  const asked = maps.get("asked_udp");
  if (asked === undefined) return 0;
  const peers = await findStuck(asked, flows, family === "IPv4", isNodeAddress);
  const stuck = new Map(peers.map((peer) => [nameOf(peer.socket, peer.endpoint), peer]));
  let count = 0;
  const namespaces = stuck.size === 0 ? [] : world.namespaces();
  const errors: ProxyError[] = [];
  for (const namespace of namespaces) {
    if (signal.aborted) break;
    try {
      const { found, ended } = await endIn(namespace, stuck, world);
      count += ended;
      // The kernel tells nobody of the peer that an ended socket had, once its program closes it.
      for (const { key } of found) asked.delete(key);
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      errors.push(error);
    }
  }
  const [first] = errors;
  if (first === undefined) return count;
  throw new ProxyError(first.code, `sockets could not be ended in ${errors.length} of ${namespaces.length} network namespaces`, {
    object: first.message,
    cause: new AggregateError(errors),
  });
}

/** A namespace that is gone meanwhile has no sockets. */
async function endIn(
  namespace: string,
  stuck: ReadonlyMap<string, StuckPeer>,
  world: Pick<EbpfWorld, "sockets">,
): Promise<{ readonly found: readonly StuckPeer[]; readonly ended: number }> {
  const sockets = world.sockets(namespace);
  try {
    const connected = await sockets.connectedTo(
      "UDP",
      Array.from(stuck.values(), ({ endpoint }) => endpoint),
    );
    const pairs = connected.flatMap((socket) => {
      const peer = stuck.get(nameOf(socket.cookie, socket.remote));
      return peer === undefined ? [] : [{ socket, peer }];
    });
    const ended = pairs.length === 0 ? 0 : await sockets.destroy(pairs.map(({ socket }) => socket));
    return { found: pairs.map(({ peer }) => peer), ended };
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return { found: [], ended: 0 };
    throw error;
  } finally {
    sockets.close();
  }
}

function nameOf(socket: bigint, { address, port }: RemoteEnd): string {
  return `${socket} ${hostPort(address, port)}`;
}

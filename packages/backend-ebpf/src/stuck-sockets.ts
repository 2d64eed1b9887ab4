import { hostPort, ProxyError } from "@turnout/core/backend";
import type { FlowFilter, IPFamily } from "@turnout/core/backend";
import type { BpfMap, ConnectedSocket, RemoteEnd } from "@turnout/host/bpf";
import { readPeers } from "./peers.ts";
import type { Peer } from "./peers.ts";
import { encodeAddress } from "./layout.ts";
import { decodeAddressFlags } from "./ranges.ts";
import type { EbpfWorld } from "./world.ts";

/**
 * Tell whether a socket talks to an endpoint that does not serve any more what the socket asked for. Pure.
 *
 * @param isNodeAddress whether node ports answer on an address
 * @source rules
 */
export function isStuck(
  { endpoint, asked }: Peer,
  { address, port, keep, only }: FlowFilter,
  isNodeAddress: (address: string) => boolean,
): boolean {
  if (asked.port !== port || !(address === "" ? isNodeAddress(asked.address) : asked.address === address)) return false;
  const text = hostPort(endpoint.address, endpoint.port);
  return !keep.includes(text) && (only === undefined || only.includes(text));
}

/** The maps by their names in C; `asked_udp` and `node_addresses` are looked at. */
export type PeerMaps = ReadonlyMap<string, Pick<BpfMap, "read" | "lookup">>;

/**
 * End UDP sockets that are connected to endpoints which are gone; resolves to how many there were. Their programs get an error, and connect again.
 *
 * Edges: sockets that aren't connected ask again with each datagram, and need none of this. Which have asked is known as long as `asked_udp` remembers them.
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
  const stuck = new Map<string, RemoteEnd>();
  const isNodeAddress = (address: string): boolean => {
    const flags = maps.get("node_addresses")?.lookup(encodeAddress(address));
    return flags !== undefined && decodeAddressFlags(flags)?.hasNodePorts === true;
  };
  const asked = maps.get("asked_udp");
  if (asked === undefined) return 0;
  for await (const peer of readPeers(asked, family))
    if (flows.some((flow) => isStuck(peer, flow, isNodeAddress))) stuck.set(nameOf(peer.socket, peer.endpoint), peer.endpoint);
  let count = 0;
  const namespaces = stuck.size === 0 ? [] : world.namespaces();
  const errors: ProxyError[] = [];
  for (const namespace of namespaces) {
    if (signal.aborted) break;
    try {
      count += await endIn(namespace, stuck, world);
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
async function endIn(namespace: string, stuck: ReadonlyMap<string, RemoteEnd>, world: Pick<EbpfWorld, "sockets">): Promise<number> {
  const sockets = world.sockets(namespace);
  try {
    const connected = await sockets.connectedTo("UDP", [...stuck.values()]);
    const found = connected.filter(({ cookie, remote }: ConnectedSocket) => stuck.has(nameOf(cookie, remote)));
    return found.length === 0 ? 0 : await sockets.destroy(found);
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return 0;
    throw error;
  } finally {
    sockets.close();
  }
}

function nameOf(socket: bigint, { address, port }: RemoteEnd): string {
  return `${socket} ${hostPort(address, port)}`;
}

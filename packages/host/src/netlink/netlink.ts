import { ProxyError } from "@turnout/core";
import type { FlowFilter, HostAddress, IPFamily, Netlink } from "@turnout/core";
import { NetlinkChannel } from "./channel.ts";
import { errno, kernelError } from "./errno.ts";
import { EventQueue } from "./event-queue.ts";
import { deleteMatchingFlows } from "./flow-deletion.ts";
import { needsLocalAddresses } from "./flow-matcher.ts";
import { listAddresses } from "./host-addresses.ts";
import { NFT_GETGEN, NftEventReader, parseGeneration } from "./nft-events.ts";
import type { NftEvent } from "./nft-events.ts";
import { NETLINK } from "./socket.ts";
import { subscribe } from "./subscription.ts";

// Multicast groups. @source linux/rtnetlink.h, linux/netfilter/nfnetlink.h
const IFADDR_GROUPS = [5, 9] as const;
const NFTABLES_GROUPS = [7] as const;
/** Commits kept for a slow reader before they collapse into "lost". */
const MAX_UNREAD_COMMITS = 1024;

/** {@link Netlink} with what watchers need. */
export interface HostNetlink extends Netlink {
  /**
   * Follow changes to the nf_tables ruleset, whoever makes them.
   *
   * Edges: subscribed when this returns, so state read afterwards misses nothing; ends on abort. `lost` means reread.
   * @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`.
   */
  watchNft(signal: AbortSignal): AsyncIterable<NftEvent>;
  /** Follow changes to the host's addresses; any number of changes since the last look is one. Edges and throws as {@link HostNetlink.watchNft}. */
  watchAddresses(signal: AbortSignal): AsyncIterable<void>;
  /** Close the sockets of requests; what is under way fails with `canceled`. Watches end by their signal. */
  close(): void;
}

/**
 * Make the real {@link HostNetlink}, for the network namespace of this process.
 *
 * Edges: sockets are opened on first use; idle ones don't keep the process alive, watches do.
 */
export function createNetlink(): HostNetlink {
  const route = new NetlinkChannel(NETLINK.route);
  // Two, so that walking a large conntrack table does not hold up the question for the generation.
  const conntrack = new NetlinkChannel(NETLINK.netfilter);
  const nft = new NetlinkChannel(NETLINK.netfilter);
  return {
    addresses: (family: IPFamily): Promise<readonly HostAddress[]> => listAddresses(route, family),
    async deleteFlows(family: IPFamily, flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
      const local = needsLocalAddresses(flows) ? await listAddresses(route, family) : [];
      const addresses = local.map((address) => address.ip);
      return deleteMatchingFlows(conntrack, family, flows, addresses, signal);
    },
    nftGeneration: (): Promise<number> => nftGeneration(nft),
    watchNft,
    watchAddresses,
    close(): void {
      for (const channel of [route, conntrack, nft]) channel.close();
    },
  };
}

async function nftGeneration(channel: NetlinkChannel): Promise<number> {
  let generation: number | undefined;
  const outcome = await channel.request(NFT_GETGEN, Buffer.alloc(4), (type, payload) => {
    generation ??= parseGeneration(type, payload);
  });
  // EINVAL is how nfnetlink says that a subsystem isn't there.
  if (outcome === errno("EINVAL")) throw new ProxyError("host_unsupported", "this kernel has no nf_tables", { hint: "load it: modprobe nf_tables" });
  if (outcome !== 0) throw kernelError(outcome, "the ruleset generation can't be read");
  if (generation === undefined) throw new ProxyError("tool_failed", "the kernel's answer holds no ruleset generation");
  return generation;
}

function watchNft(signal: AbortSignal): AsyncIterable<NftEvent> {
  const reader = new NftEventReader();
  return watch<NftEvent>(NETLINK.netfilter, NFTABLES_GROUPS, { limit: MAX_UNREAD_COMMITS, overflow: { kind: "lost" } }, signal, (queue) => ({
    onMessage(message): void {
      const event = reader.take(message);
      if (event !== undefined) queue.put(event);
    },
    onLost(): void {
      reader.reset();
      queue.put({ kind: "lost" });
    },
  }));
}

function watchAddresses(signal: AbortSignal): AsyncIterable<void> {
  return watch<void>(NETLINK.route, IFADDR_GROUPS, { limit: 1, overflow: undefined }, signal, (queue) => ({
    onMessage: () => queue.put(),
    onLost: () => queue.put(),
  }));
}

interface Handlers {
  onMessage(message: Parameters<NftEventReader["take"]>[0]): void;
  onLost(): void;
}

function watch<T>(
  protocol: number,
  groups: readonly number[],
  bounds: { readonly limit: number; readonly overflow: T },
  signal: AbortSignal,
  handlersFor: (queue: EventQueue<T>) => Handlers,
): AsyncIterable<T> {
  let close = (): void => undefined;
  const stop = (): void => {
    signal.removeEventListener("abort", stop);
    close();
    queue.end();
  };
  const queue = new EventQueue<T>(bounds.limit, bounds.overflow, stop);
  if (signal.aborted) {
    queue.end();
    return queue;
  }
  const handlers = handlersFor(queue);
  const onFailure = (error: ProxyError): void => {
    queue.fail(error);
    stop();
  };
  close = subscribe(protocol, groups, { onMessage: (message) => handlers.onMessage(message), onLost: () => handlers.onLost(), onFailure }).close;
  signal.addEventListener("abort", stop, { once: true });
  return queue;
}

import { ProxyError } from "@turnout/core";
import { NetlinkChannel, openSocket } from "../../netlink/channel.ts";
import { errno, errnoName, kernelError } from "../../netlink/errno.ts";
import { NETLINK } from "../../netlink/socket.ts";
import { inNetworkNamespace } from "./namespace.ts";
import { endKeys, listRequest, parseSocket, remoteKey, SOCK_DIAG, SOCKET_FAMILIES } from "./socket-diag.ts";
import type { ConnectedSocket, SocketProtocol } from "./socket-diag.ts";

/** The other end of sockets: an endpoint that is gone. The address is canonical. */
export interface RemoteEnd {
  readonly address: string;
  /** 1–65535. */
  readonly port: number;
}

/** The sockets of one network namespace. */
export interface Sockets {
  /**
   * List the sockets that are connected to any of the ends, of both families.
   *
   * Edges: a socket that is connected while the list is made may be missing. Those that programs of ours sent to an endpoint show that endpoint.
   * @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`; `not_found` when the namespace is gone.
   */
  connectedTo(protocol: SocketProtocol, ends: readonly RemoteEnd[]): Promise<readonly ConnectedSocket[]>;
  /** End sockets: their programs get ECONNABORTED. Gives how many there still were. @throws {ProxyError} as {@link Sockets.connectedTo}. */
  destroy(sockets: readonly ConnectedSocket[]): Promise<number>;
  /** Close what this has open once what is under way has ended; what has not begun fails with `canceled`. */
  close(): void;
}

/** Look at the sockets of a network namespace, by its path (`/proc/123/ns/net`), or of this process's own. Touches nothing yet. */
export function createSockets(namespace?: string): Sockets {
  return new KernelSockets(namespace);
}

class KernelSockets implements Sockets {
  readonly #channel: NetlinkChannel;

  constructor(namespace: string | undefined) {
    // A socket stays in the namespace in which it was opened.
    const open = (protocol: number): ReturnType<typeof openSocket> =>
      namespace === undefined ? openSocket(protocol) : inNetworkNamespace(namespace, () => openSocket(protocol));
    this.#channel = new NetlinkChannel(NETLINK.sockDiag, open);
  }

  async connectedTo(protocol: SocketProtocol, ends: readonly RemoteEnd[]): Promise<readonly ConnectedSocket[]> {
    const wanted = new Set(ends.flatMap(endKeys));
    const found: ConnectedSocket[] = [];
    if (wanted.size === 0) return found;
    for (const family of SOCKET_FAMILIES) {
      const { errno: value } = await this.#channel.dump(SOCK_DIAG.byFamily, listRequest(protocol, family), (_, payload) => {
        const key = remoteKey(payload);
        if (key !== undefined && wanted.has(key)) found.push(parseSocket(payload, protocol));
      });
      if (value !== 0) throw refusal(value, `sockets of ${protocol} can't be listed`);
    }
    return found;
  }

  async destroy(sockets: readonly ConnectedSocket[]): Promise<number> {
    const requests = sockets.map(({ destroyRequest }) => destroyRequest);
    const values = await this.#channel.requestMany(SOCK_DIAG.destroy, requests);
    const other = values.find((value) => value !== 0 && value !== errno("ENOENT"));
    if (other !== undefined) throw refusal(other, "sockets can't be ended");
    return values.filter((value) => value === 0).length;
  }

  close(): void {
    this.#channel.close();
  }
}

/** Of a protocol that the kernel can't list sockets of it says ENOENT. */
function refusal(value: number, what: string): ProxyError {
  if (value !== errno("ENOENT")) return kernelError(value, what);
  return new ProxyError("host_unsupported", `${what} (ENOENT)`, { hint: "modprobe udp_diag tcp_diag" });
}

/** Try whether sockets can be ended from outside, by one that isn't there; true, or what is missing. Of this network namespace. */
export async function canDestroySockets(): Promise<true | { readonly missing: string }> {
  const channel = new NetlinkChannel(NETLINK.sockDiag);
  try {
    for (const protocol of ["UDP", "TCP"] as const) {
      // With a protocol that it doesn't know the kernel finds no socket either, so it is asked for a list first.
      const { errno: listed } = await channel.dump(SOCK_DIAG.byFamily, listRequest(protocol, SOCKET_FAMILIES[0], 0), () => undefined);
      if (listed !== 0) return { missing: `${protocol}: ${errnoName(listed)}` };
      const value = await channel.request(SOCK_DIAG.destroy, listRequest(protocol, SOCKET_FAMILIES[0]));
      if (value !== errno("ENOENT")) return { missing: `${protocol}: ${errnoName(value)}` };
    }
    return true;
  } catch (error) {
    if (ProxyError.is(error)) return { missing: error.what };
    throw error;
  } finally {
    channel.close();
  }
}

import type { Flow } from "@turnout/conformance";
import { hostPort } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import type { ConnectedSocket, RemoteEnd, Sockets } from "@turnout/host/bpf";

/** A UDP socket that some program holds, connected. */
export interface OpenSocket {
  readonly namespace: string;
  readonly cookie: bigint;
  readonly family: IPFamily;
  readonly source: string;
  /** What its program asked for. */
  readonly asked: RemoteEnd;
  /** Whom it talks to. */
  readonly remote: RemoteEnd;
}

const SOURCE_PORT = 40_000;

/** Connected UDP sockets of the node and its pods. */
export class MemorySockets {
  #open: readonly OpenSocket[] = [];

  /** A program opens one; it closes the one with which it asked the same before. */
  add(socket: OpenSocket): void {
    const isSame = (one: OpenSocket): boolean =>
      one.namespace === socket.namespace &&
      one.source === socket.source &&
      textOf(one.asked) === textOf(socket.asked) &&
      textOf(one.remote) === textOf(socket.remote);
    this.#open = [...this.#open.filter((one) => !isSame(one)), socket];
  }

  get flows(): readonly Flow[] {
    return this.#open.map(({ family, source, asked, remote }) => ({
      family,
      source,
      destination: asked.address,
      port: asked.port,
      endpoint: textOf(remote),
    }));
  }

  /** Those of a network namespace, as sock_diag shows them. */
  of(namespace: string): Sockets {
    return {
      connectedTo: (protocol, ends) => {
        const wanted = new Set(ends.map(textOf));
        const found = this.#open.filter((one) => protocol === "UDP" && one.namespace === namespace && wanted.has(textOf(one.remote)));
        return Promise.resolve(
          found.map(({ cookie, source, remote }): ConnectedSocket => {
            return { protocol: "UDP", local: { address: source, port: SOURCE_PORT }, remote, cookie, destroyRequest: Buffer.alloc(0) };
          }),
        );
      },
      destroy: (sockets) => {
        const cookies = new Set(sockets.map(({ cookie }) => cookie));
        const left = this.#open.filter((one) => one.namespace !== namespace || !cookies.has(one.cookie));
        const count = this.#open.length - left.length;
        this.#open = left;
        return Promise.resolve(count);
      },
      close(): void {
        // Nothing is open.
      },
    };
  }
}

function textOf({ address, port }: RemoteEnd): string {
  return hostPort(address, port);
}

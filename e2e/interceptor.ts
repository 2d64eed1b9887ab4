import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";

/** What becomes of a connection. */
export type Treatment = (socket: Socket) => void;

/** Stands on a socket between a backend and its node-state server: hands bytes on, until it is told to do otherwise. */
export interface Interceptor {
  /** Connections so far. */
  readonly connections: number;
  /** Bytes handed on to the backend so far. */
  readonly toBackend: number;
  /** Break off what is open, and treat what comes so from now on; default: hand it on again. */
  treat(treatment?: Treatment): void;
  /** Wait for so many connections more. */
  more(connections: number): Promise<void>;
  close(): Promise<void>;
}

/** Listen on `path`, and hand on to `target`. */
export async function createInterceptor(path: string, target: string): Promise<Interceptor> {
  const open = new Set<Socket>();
  const waiting = new Set<() => void>();
  let connections = 0;
  let toBackend = 0;
  const keep = (socket: Socket): void => {
    open.add(socket);
    // What breaks here breaks on purpose; both ends of it are watched elsewhere.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => open.delete(socket));
  };
  const passOn: Treatment = (socket) => {
    const stateServer = connect(target);
    keep(stateServer);
    stateServer.on("close", () => socket.destroy());
    socket.on("close", () => stateServer.destroy());
    stateServer.on("data", (chunk: Buffer) => (toBackend += chunk.length));
    socket.pipe(stateServer).pipe(socket);
  };
  let treatment = passOn;
  const server: Server = createServer((socket) => {
    connections += 1;
    keep(socket);
    treatment(socket);
    for (const wake of waiting) wake();
  });
  server.listen(path);
  await once(server, "listening");
  return {
    get connections() {
      return connections;
    },
    get toBackend() {
      return toBackend;
    },
    treat: (next = passOn) => {
      treatment = next;
      for (const socket of open) socket.destroy();
    },
    more: async (count) => {
      const wanted = connections + count;
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = (): void => (connections >= wanted ? resolve() : undefined);
      waiting.add(look);
      await promise;
      waiting.delete(look);
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

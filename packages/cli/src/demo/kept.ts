import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { ProxyError } from "@turnout/core";
import { sweepLeftovers } from "@turnout/lab";

/** Where a kept demo listens for the word to go. */
const SOCKET = "/run/turnout-demo.sock";

/** A kept demo's ear. */
export interface KeptEar {
  /** Resolves when somebody says the demo should go. */
  readonly asked: Promise<void>;
  /** Tell whoever asked that everything is gone. */
  close(): Promise<void>;
}

/** Connect to a kept demo; undefined when there is none (a dead one's socket counts as none). */
async function reach(): Promise<Socket | undefined> {
  const socket = connect(SOCKET);
  try {
    await once(socket, "connect");
    return socket;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ECONNREFUSED") return undefined;
    throw ProxyError.from(error, "permission_denied", "the kept demo can't be reached", { object: SOCKET, hint: "run as root" });
  }
}

/** @throws {ProxyError} `already_exists` when a demo is kept on this machine. */
export async function refuseSecond(): Promise<void> {
  const socket = await reach();
  if (socket === undefined) return;
  socket.destroy();
  throw new ProxyError("already_exists", "a demo is kept already", { hint: "remove it with: npx turnout demo --clean" });
}

/** Listen for the word to go. */
export async function listenForClean(): Promise<KeptEar> {
  await rm(SOCKET, { force: true });
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const askers = new Set<Socket>();
  const server = createServer((socket) => {
    askers.add(socket);
    // One that only looked whether somebody is here hangs up without a word.
    socket.on("error", () => socket.destroy()).on("data", () => resolve());
  });
  server.listen(SOCKET);
  await once(server, "listening");
  return {
    asked,
    close: async () => {
      server.close();
      for (const socket of askers) socket.destroy();
      await rm(SOCKET, { force: true });
    },
  };
}

/**
 * Remove what a kept demo left, and what dead ones left; resolves to what was done, as a sentence.
 * @throws {ProxyError} `permission_denied` for anyone but root.
 */
export async function cleanKept(): Promise<string> {
  const socket = await reach();
  if (socket !== undefined) {
    const gone = once(socket, "close");
    socket.on("error", () => socket.destroy()).write("go\n");
    await gone;
  }
  await rm(SOCKET, { force: true });
  const swept = sweepLeftovers();
  if (socket === undefined && swept.length === 0) return "There was no demo to remove.";
  return "The demo is removed: namespaces, servers and proxies.";
}

import { once } from "node:events";
import { chmod, chown, lstat, rename, unlink } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { ProxyError } from "@turnout/core";

/** Where to listen, and who may connect. */
export interface UnixListenerOptions {
  /** Absolute. */
  readonly path: string;
  /** File mode; who may write may connect. */
  readonly mode: number;
  /** Numeric; undefined: as the process creates it. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  readonly onConnection: (socket: Socket) => void;
}

/** A socket that is listened on. */
export interface UnixListener {
  /** Take no more connections, and remove the file unless it is somebody else's by now. */
  close(): Promise<void>;
}

function problem(error: unknown, path: string): ProxyError {
  const { code, message } = error as NodeJS.ErrnoException;
  const what = `the socket can't be listened on (${message})`;
  if (code === "EACCES" || code === "EPERM") return new ProxyError("permission_denied", what, { object: path, cause: error });
  const hint = code === "ENOENT" ? "make its directory first" : undefined;
  return new ProxyError("not_found", what, { object: path, cause: error, ...(hint === undefined ? {} : { hint }) });
}

/** Tell what is at the path: nothing, a socket without a listener, or somebody. @throws {ProxyError} when it is no socket. */
async function found(path: string): Promise<"nothing" | "stale" | "live"> {
  const stats = await lstat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw problem(error, path);
  });
  if (stats === undefined) return "nothing";
  if (!stats.isSocket()) throw new ProxyError("already_exists", "something that is no socket is in the way", { object: path });
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return "live";
  } catch (error) {
    // ECONNREFUSED: nobody listens. Anything else (no right to it, a full backlog) may be somebody.
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED" ? "stale" : "live";
  } finally {
    socket.destroy();
  }
}

/**
 * Listen on a unix socket. A file left behind by a process that died is replaced.
 *
 * Edges: the socket is made beside its place, given its mode and owner, and then moved there: it is never there with
 * other rights, and whoever connects at any moment finds a listener.
 * @throws {ProxyError} `already_exists` when somebody listens there, or it is no socket; `permission_denied`, `not_found`.
 */
export async function listenUnix({ path, mode, owner, onConnection }: UnixListenerOptions): Promise<UnixListener> {
  if ((await found(path)) === "live") {
    const hint = "stop it, or listen elsewhere";
    throw new ProxyError("already_exists", "somebody listens on this socket already", { object: path, hint });
  }
  // listen() says EACCES of a directory that is missing.
  await lstat(dirname(path)).catch((error: unknown) => {
    throw problem(error, path);
  });
  const made = `${path}.${process.pid}`;
  const server = createServer(onConnection);
  try {
    server.listen(made);
    await once(server, "listening");
    await chmod(made, mode);
    if (owner !== undefined) await chown(made, owner.uid, owner.gid);
    await rename(made, path);
  } catch (error) {
    server.close();
    throw problem(error, path);
  }
  const { ino } = await lstat(path);
  return {
    async close() {
      server.close();
      const [now] = await Promise.allSettled([lstat(path)]);
      if (now.status === "fulfilled" && now.value.ino === ino) await unlink(path);
    },
  };
}

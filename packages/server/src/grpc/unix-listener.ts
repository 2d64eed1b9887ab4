import { once } from "node:events";
import { chmod, chown, lstat, rename, unlink } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { ProxyError, type Clock, type Log } from "@turnout/core";

/** Where to listen, and who may connect. */
export interface UnixListenerOptions {
  /** Absolute. */
  readonly path: string;
  /** File mode; who may write may connect. */
  readonly mode: number;
  /** Numeric; undefined: as the process creates it. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
  readonly onConnection: (socket: Socket) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** A socket that is listened on. */
export interface UnixListener {
  /** Why nobody new can connect; "" when they can, as far as the last look told. */
  readonly problem: string;
  /** Take no more connections, and remove the file unless it is somebody else's by now. */
  close(): Promise<void>;
}

/** So often it is looked whether the file is still there. */
const POLL_MS = 1_000;
/** @source unix(7) sun_path */
const PATH_BYTES_MAX = 107;

function listenError(error: unknown, path: string): ProxyError {
  const { code, message } = error as NodeJS.ErrnoException;
  const what = `the socket can't be listened on (${message})`;
  if (code === "EPERM") {
    return new ProxyError("permission_denied", what, { object: path, cause: error, hint: "only root may give it another owner" });
  }
  if (code === "EACCES") {
    return new ProxyError("permission_denied", what, { object: path, cause: error, hint: "run it as who may write in its directory" });
  }
  if (code === "ENOENT") return new ProxyError("not_found", what, { object: path, cause: error, hint: "make its directory first" });
  return new ProxyError("tool_failed", what, { object: path, cause: error });
}

/** Tell what is at the path: nothing, a socket without a listener, or somebody. @throws {ProxyError} when it is no socket. */
async function found(path: string): Promise<"nothing" | "stale" | "live"> {
  const stats = await lstat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw listenError(error, path);
  });
  if (stats === undefined) return "nothing";
  if (!stats.isSocket()) throw new ProxyError("already_exists", "a file that is not a socket has this path", { object: path });
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

/** A socket that was made, and the file it was made as. */
interface MadeSocket {
  readonly server: Server;
  readonly file: string;
}

/** What tells one file from another that has its name, or its inode, after it. */
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, birthtimeMs } = await lstat(path);
    return `${dev} ${ino} ${birthtimeMs}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw listenError(error, path);
  }
}

/** Make the socket beside its place, give it mode and owner, and move it there. @throws {ProxyError} */
async function make({ path, mode, owner, onConnection, log }: UnixListenerOptions): Promise<MadeSocket> {
  const made = `${path}.${process.pid.toString(36)}`;
  if (Buffer.byteLength(made) > PATH_BYTES_MAX) {
    const most = PATH_BYTES_MAX - Buffer.byteLength(made) + Buffer.byteLength(path);
    throw new ProxyError("invalid_object", `the path of a socket to listen on has at most ${most} bytes`, { object: path });
  }
  // listen() says EACCES of a directory that is missing.
  await lstat(dirname(path)).catch((error: unknown) => {
    throw listenError(error, path);
  });
  // Left by one of our number that died in the middle: in containers each node-state server may have the number of the one before.
  const isInTheWay = (await found(made)) === "stale";
  const server = createServer(onConnection);
  try {
    if (isInTheWay) await unlink(made);
    server.listen(made);
    await once(server, "listening");
    await chmod(made, mode);
    if (owner !== undefined) await chown(made, owner.uid, owner.gid);
    const file = (await identityOf(made)) ?? "";
    await rename(made, path);
    // Taking a connection may fail; that is no reason to stop. Want of descriptors is not told here, nor by "drop": libuv takes
    // such a connection with one it keeps in reserve, and hangs up (seen on Node 24: 140 of 200 clients, without a word).
    server.on("error", (error) => log.warn("a connection could not be taken", { listen: path, error }));
    return { server, file };
  } catch (error) {
    server.close();
    throw listenError(error, path);
  }
}

/** Keeps a socket at its path. */
class KeptSocket implements UnixListener {
  readonly #options: UnixListenerOptions;
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  #made: MadeSocket;
  #problem = "";

  constructor(options: UnixListenerOptions, made: MadeSocket) {
    this.#options = options;
    this.#made = made;
    this.#watching = this.#watch(this.#stop.signal);
  }

  get problem(): string {
    return this.#problem;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    const { path } = this.#options;
    this.#made.server.close();
    const [now] = await Promise.allSettled([identityOf(path)]);
    if (now.status === "fulfilled" && now.value === this.#made.file) await unlink(path);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await clock.sleep(POLL_MS, signal);
      if (signal.aborted) return;
      try {
        await this.#look();
      } catch (error) {
        if (!ProxyError.is(error)) throw error;
        this.#notify(`the socket is gone and can't be made again (${error.message})`);
      }
    }
  }

  async #look(): Promise<void> {
    const { path, log } = this.#options;
    const now = await identityOf(path);
    if (now !== undefined) {
      this.#notify(now === this.#made.file ? "" : "something else is where our socket was");
      return;
    }
    const before = this.#made;
    this.#made = await make(this.#options);
    before.server.close();
    this.#problem = "";
    log.warn("our socket was removed, and is made again", { listen: path });
  }

  #notify(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    const { path, log } = this.#options;
    if (problem === "") log.info("our socket is back", { listen: path });
    else log.warn("new clients can't connect; existing connections stay", { listen: path, reason: problem });
  }
}

/**
 * Listen on a unix socket. A file left behind by a process that died is replaced.
 *
 * Edges: the socket is made beside its place, given its mode and owner, and then moved there: it is never there with
 * other rights, and whoever connects at any moment finds a listener. One that somebody removes is made again within a
 * second; whatever somebody puts in its place is left alone, and told.
 * @throws {ProxyError} `already_exists` when somebody listens there, or it is no socket; `permission_denied`; `not_found` when
 * its directory is; `invalid_object` for a path that is too long; `tool_failed` for anything else, such as a full disk.
 */
export async function listenUnix(options: UnixListenerOptions): Promise<UnixListener> {
  const { path } = options;
  if ((await found(path)) === "live") {
    const hint = "stop it, or listen elsewhere";
    throw new ProxyError("already_exists", "another process listens on this socket already", { object: path, hint });
  }
  return new KeptSocket(options, await make(options));
}

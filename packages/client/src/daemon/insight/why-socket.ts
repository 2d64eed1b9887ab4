import { once } from "node:events";
import { access, constants, lstat, mkdir, readdir, readlink, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { ProxyError, type Clock, type Log } from "@turnout/core";
import { serveHttp, type Handler } from "../health/http.ts";

const RUN = "/run/turnout";
/** A socket that is younger may be about to be listened on. */
const YOUNG_MS = 60_000;

/** Where sockets of this user's processes are: root's in /run, as those of its other programs; others' there too where they may write. */
async function runDirectory(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return RUN;
  return await access(RUN, constants.W_OK).then(
    () => RUN,
    () => join(tmpdir(), `turnout-${uid}`),
  );
}

/**
 * The unix socket at which a proxy answers `turnout why`, named by its network namespace and by the port of its metrics: that is how a proxy is told from
 * others on one host.
 */
export async function whySocketPath(metricsPort: number, directory?: string): Promise<string> {
  const namespace = await readlink("/proc/self/ns/net").then(
    (text) => /\d+/.exec(text)?.[0] ?? "0",
    () => "0",
  );
  return join(directory ?? (await runDirectory()), `why-${namespace}-${metricsPort}.sock`);
}

/**
 * Where `turnout why` finds the socket of a proxy with this metrics port, in the order in which they are tried.
 *
 * Edges: the user's own first. Root may also ask proxies of other users that may not write to /run/turnout: only a `turnout-UID` that belongs to that UID counts,
 * as any user may create that name.
 */
export async function whySocketPaths(
  metricsPort: number,
  isRoot: boolean = process.getuid?.() === 0,
  temporary: string = tmpdir(),
): Promise<readonly [string, ...string[]]> {
  const own = await whySocketPath(metricsPort);
  if (!isRoot) return [own];
  const found: string[] = [];
  const names = await readdir(temporary).then(
    (all) => all.filter((name) => /^turnout-\d+$/.test(name)),
    () => [],
  );
  for (const name of names) {
    const [folder, socket] = [join(temporary, name), join(temporary, name, basename(own))];
    const isFound = await Promise.all([lstat(folder), lstat(socket)]).then(
      ([of, at]) => of.isDirectory() && name === `turnout-${of.uid}` && at.isSocket(),
      () => false,
    );
    if (isFound) found.push(socket);
  }
  return [own, ...found];
}

/** What the socket is served with. */
export interface WhySocketOptions {
  readonly metricsPort: number;
  readonly directory: string | undefined;
  readonly handler: Handler;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Answer on the unix socket of `turnout why` until aborted: only who runs the proxy, and root, may ask, as an answer takes much of the proxy's time.
 *
 * Edges: a socket that can't be made is logged once and tried again every 5 s, as while the process before this one still listens; nothing else stops. A process
 * that was killed leaves its file, which the next one removes.
 */
export async function serveWhySocket(options: WhySocketOptions, signal: AbortSignal): Promise<void> {
  const { metricsPort, directory, handler, clock, log } = options;
  // A named pipe of Windows has no mode.
  if (process.platform === "win32") return;
  const path = await whySocketPath(metricsPort, directory);
  const prepare = async (): Promise<void> => {
    try {
      await makeDirectory(dirname(path));
      await removeStale(path);
    } catch (error) {
      throw ProxyError.from(error, "tool_failed", "the socket can't be made", {
        object: path,
        hint: `make ${dirname(path)} writable to the proxy`,
      });
    }
  };
  // It takes its file along when it ends.
  await serveHttp({ name: "turnout why", address: { path }, handler, prepare, hardFail: false, clock, log }, signal);
}

/** @throws {ProxyError} `permission_denied` for a directory of another user, who could put a socket there. */
async function makeDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await access(directory, constants.W_OK);
  const stats = await lstat(directory);
  if (stats.isDirectory() && [0, process.getuid?.()].includes(stats.uid)) return;
  throw new ProxyError("permission_denied", "this directory is another user's", { object: directory, hint: "remove it" });
}

/** Remove what killed processes left: this one's file, and those of other network namespaces. @throws {ProxyError} `already_exists` where another process has this one's. */
async function removeStale(own: string): Promise<void> {
  if (await isListenedOn(own)) throw new ProxyError("already_exists", "another process listens on this socket", { object: own });
  for (const name of await readdir(dirname(own))) {
    const path = join(dirname(own), name);
    if (path === own || !/^why-\d+-\d+\.sock$/.test(name) || Date.now() - (await lstat(path)).mtimeMs < YOUNG_MS) continue;
    await isListenedOn(path);
  }
}

/** Whether a process listens on a socket; a file on which nobody does is removed. */
async function isListenedOn(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ECONNREFUSED") await rm(path, { force: true });
    else if (code !== "ENOENT") throw error;
    return false;
  } finally {
    socket.destroy();
  }
}

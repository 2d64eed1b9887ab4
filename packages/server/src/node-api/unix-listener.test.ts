import { once } from "node:events";
import { lstat, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@turnout/house/needs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listenUnix, type UnixListener } from "./unix-listener.ts";

let directory: string;
let path: string;
let listener: UnixListener | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-listen-"));
  path = join(directory, "node.sock");
});

afterEach(async () => {
  await listener?.close();
  listener = undefined;
  await rm(directory, { recursive: true });
});

async function listen(options: Partial<Parameters<typeof listenUnix>[0]> = {}): Promise<number> {
  let connections = 0;
  listener = await listenUnix({
    path,
    mode: 0o660,
    onConnection: (socket) => {
      connections += 1;
      socket.end();
    },
    ...options,
  });
  const socket = connect(path);
  socket.resume();
  await once(socket, "close");
  return connections;
}

/** Leave behind what a killed process leaves behind. */
async function leaveStale(): Promise<void> {
  const server = createServer();
  server.listen(`${path}.other`);
  await once(server, "listening");
  // A server removes the file it made when it closes, so the file has another name by then.
  await rename(`${path}.other`, path);
  server.close();
  await once(server, "close");
}

describe("a listener on a unix socket", () => {
  test("has the mode it was given, and takes its file along", async () => {
    expect(await listen({ mode: 0o600 })).toBe(1);
    const stats = await lstat(path);
    expect([stats.isSocket(), stats.mode & 0o777]).toEqual([true, 0o600]);
    await listener?.close();
    listener = undefined;
    expect(await readdir(directory)).toEqual([]);
  });

  test("has the owner it was given", needs("root"), async () => {
    await listen({ owner: { uid: 12, gid: 34 } });
    const { uid, gid } = await lstat(path);
    expect([uid, gid]).toEqual([12, 34]);
  });

  test("replaces a file without a listener", async () => {
    await leaveStale();
    expect((await lstat(path)).isSocket()).toBe(true);
    expect(await listen()).toBe(1);
  });

  test("does not take the place of a live one, which goes on", async () => {
    await listen();
    await expect(listenUnix({ path, mode: 0o660, onConnection: () => undefined })).rejects.toThrow(
      `[already_exists] somebody listens on this socket already: ${path}: stop it, or listen elsewhere`,
    );
    const socket = connect(path);
    await once(socket, "connect");
    socket.destroy();
  });

  test("does not touch what is no socket", async () => {
    await writeFile(path, "precious");
    await expect(listen()).rejects.toThrow(`[already_exists] something that is no socket is in the way: ${path}`);
    expect((await lstat(path)).size).toBe(8);
  });

  test("leaves a file alone that somebody else has put in its place", async () => {
    await listen();
    const mine = listener;
    await rm(path);
    await writeFile(path, "another's");
    await mine?.close();
    listener = undefined;
    expect((await lstat(path)).size).toBe(9);
  });

  test("says what to do about a directory that is missing", async () => {
    await expect(listen({ path: join(directory, "no", "node.sock") })).rejects.toThrow(/^\[not_found\].*make its directory first$/);
  });
});

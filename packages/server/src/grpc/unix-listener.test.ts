import { once } from "node:events";
import { lstat, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { needs } from "@turnout/house/needs";
import { beforeEach, describe, expect, test } from "vitest";
import { eventually, ManualClock, RecordingLog, testDirectory, untilTestEnds } from "../test-support/world.ts";
import { listenUnix, type UnixListener } from "./unix-listener.ts";

let directory: string;
let path: string;
let listener: UnixListener;
let clock: ManualClock;
let log: RecordingLog;

beforeEach(async () => {
  directory = await testDirectory();
  path = join(directory, "node.sock");
  clock = new ManualClock();
  log = new RecordingLog();
});

/** How many connections it took, with one made here. */
async function listen(options: Partial<Parameters<typeof listenUnix>[0]> = {}): Promise<number> {
  let connections = 0;
  const made = await listenUnix({
    path,
    mode: 0o660,
    onConnection: (socket) => {
      connections += 1;
      socket.end();
    },
    clock,
    log,
    ...options,
  });
  listener = untilTestEnds(made);
  await visit();
  return connections;
}

/** Connect, and be let go again by who listens. */
async function visit(): Promise<void> {
  const socket = connect(path);
  socket.resume();
  await once(socket, "close");
}

/** Let it look after its file, and wait for what it says of it. */
async function looked(line: string): Promise<void> {
  clock.advance(1_000);
  await eventually(() => log.lines.at(-1)?.line === line);
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
    await listener.close();
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

  test("replaces what one of the same number left that died before its socket was in place", async () => {
    await leaveStale();
    await rename(path, `${path}.${process.pid.toString(36)}`);
    expect(await listen()).toBe(1);
    expect(await readdir(directory)).toEqual(["node.sock"]);
  });

  test("does not take the place of a live one, which goes on", async () => {
    await listen();
    await expect(listenUnix({ path, mode: 0o660, onConnection: () => undefined, clock, log })).rejects.toThrow(
      `[already_exists] another process listens on this socket already: ${path}: stop it, or listen elsewhere`,
    );
    const socket = connect(path);
    await once(socket, "connect");
    socket.destroy();
  });

  test("does not touch what is no socket", async () => {
    await writeFile(path, "precious");
    await expect(listen()).rejects.toThrow(`[already_exists] a file that is not a socket has this path: ${path}`);
    expect((await lstat(path)).size).toBe(8);
  });

  test("leaves a file alone that somebody else has put in its place", async () => {
    await listen();
    const mine = listener;
    await rm(path);
    await writeFile(path, "another's");
    await mine.close();
    expect((await lstat(path)).size).toBe(9);
  });

  test("says what to do about a directory that is missing", async () => {
    await expect(listen({ path: join(directory, "no", "node.sock") })).rejects.toThrow(/^\[not_found\].*make its directory first$/);
  });

  test("says how long a path may be, and that a directory is in the way", async () => {
    const long = join(directory, "x".repeat(105 - directory.length));
    await expect(listen({ path: long })).rejects.toThrow(/^\[invalid_object\] the path of a socket to listen on has at most 10\d bytes/);
    await expect(listen({ path: directory })).rejects.toThrow(/^\[already_exists\] a file that is not a socket has this path/);
  });
});

describe("a socket that somebody removes", () => {
  const REMOVED = "warn our socket was removed, and is made again";
  const PROBLEM = "warn new clients can't connect; existing connections stay";

  test("is made again with its mode, and who is connected stays so", async () => {
    let taken = 0;
    listener = untilTestEnds(await listenUnix({ path, mode: 0o600, onConnection: () => (taken += 1), clock, log }));
    const early = connect(path);
    await once(early, "connect");
    await rm(path);
    await looked(REMOVED);
    expect((await lstat(path)).mode & 0o777).toBe(0o600);
    const late = connect(path);
    await once(late, "connect");
    await eventually(() => taken === 2);
    expect([early.destroyed, listener.problem]).toEqual([false, ""]);
    early.destroy();
    late.destroy();
    await listener.close();
    expect(await readdir(directory)).toEqual([]);
  });

  test("is told once when it can't be, and made when it can", async () => {
    await listen();
    await rename(directory, `${directory}.away`);
    await looked(PROBLEM);
    expect(listener.problem).toMatch(/can't be made again.*make its directory first/);
    for (let again = 0; again < 3; again++) clock.advance(1_000);
    await mkdir(directory);
    await looked(REMOVED);
    expect(log.of("warn")).toEqual([PROBLEM, REMOVED]);
    await visit();
    await rm(`${directory}.away`, { recursive: true });
  });

  test("and has something put in its place is told, and what is there left alone", async () => {
    await listen();
    await rm(path);
    await leaveStale();
    await looked(PROBLEM);
    expect(listener.problem).toBe("something else is where our socket was");
    await rm(path);
    await looked(REMOVED);
    expect(listener.problem).toBe("");
    await visit();
  });
});

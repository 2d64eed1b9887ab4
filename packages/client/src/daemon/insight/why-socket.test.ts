import { access, mkdir, mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { serveWhySocket, whySocketPath, whySocketPaths } from "./why-socket.ts";

const PORT = 10_249;
let directory = "";
beforeEach(async () => void (directory = await mkdtemp(join(tmpdir(), "turnout-why-"))));
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A proxy's socket, by its answer. */
function serving(body: string): { readonly clock: ToyClock; readonly log: ToyLog; end(): Promise<void> } {
  const [clock, log, stop] = [new ToyClock(), new ToyLog(), new AbortController()];
  const done = serveWhySocket(
    { metricsPort: PORT, directory, handler: () => ({ status: 200, headers: {}, body }), clock, log },
    stop.signal,
  );
  return { clock, log, end: () => (stop.abort(), done) };
}

async function answer(): Promise<string> {
  const socketPath = await whySocketPath(PORT, directory);
  return await new Promise((resolve) => {
    get({ socketPath, path: "/", agent: false }, (response) => response.setEncoding("utf8").once("data", resolve)).on("error", () =>
      resolve(""),
    );
  });
}

test("a proxy that starts while the one before it still runs takes the socket once that one has ended", async () => {
  const old = serving("old");
  await eventually("the old one answers", async () => (await answer()) === "old");
  const next = serving("next");
  await eventually("the next one logs that it has to wait", () => next.log.lines.length > 0);
  await next.clock.advance(5_000);
  expect(await answer()).toBe("old");
  await old.end();
  await eventually("the next one answers", async () => {
    await next.clock.advance(5_000);
    return (await answer()) === "next";
  });
  expect(next.log.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
  expect(next.log.lines.join()).toContain("another process listens on this socket");
  await next.end();
  await expect(access(await whySocketPath(PORT, directory))).rejects.toThrow("ENOENT");
});

test("root also finds the sockets of other users' proxies, in folders that belong to their UID", async () => {
  const own = await whySocketPath(PORT);
  const uid = process.getuid?.() ?? 0;
  const paths = [`turnout-${uid}`, `turnout-${uid + 1}`].map((name) => join(directory, name, basename(own)));
  for (const path of paths) await mkdir(join(path, ".."));
  expect(await whySocketPaths(PORT, true, directory)).toEqual([own]);
  const servers = paths.map((path) => createServer().listen(path));
  await Promise.all(servers.map((server) => once(server, "listening")));
  expect(await whySocketPaths(PORT, true, directory)).toEqual([own, paths[0]]);
  expect(await whySocketPaths(PORT, false, directory)).toEqual([own]);
  for (const server of servers) server.close();
  expect(await whySocketPaths(PORT, true, join(directory, "none"))).toEqual([own]);
});

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { lastTally } from "./traffic.ts";
import type { Tally } from "./traffic.ts";

const clients: ChildProcess[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.kill("SIGKILL");
});

it("a client counts what it keeps, what is tried, and what is lost of both", async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = spawn(process.execPath, [fileURLToPath(new URL("client.ts", import.meta.url)), `127.0.0.1:${port}`]);
  clients.push(client);
  const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  const tallyWhen = async (fits: (tally: Tally) => boolean): Promise<Tally> => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error("the client ended");
      const tally = lastTally(value, "client");
      if (fits(tally)) return tally;
    }
  };
  expect(await tallyWhen(({ tried }) => tried > 20)).toMatchObject({ kept: 50, broken: 0, failed: 0, why: "" });
  server.close();
  for (const socket of sockets) socket.destroy();
  const after = await tallyWhen(({ broken, failed }) => broken === 50 && failed > 0);
  expect(after.why).toMatch(/^a (?:new|kept) connection at /);
});

it("a client that writes nothing does not count", () => {
  expect(() => lastTally("", "pod/move-pod-1")).toThrow("pod/move-pod-1 does not count");
});

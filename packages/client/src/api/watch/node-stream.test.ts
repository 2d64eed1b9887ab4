import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ToyStateServer } from "../../test-support/toy-state-server.ts";
import { openByteStream, WATCH_PATH } from "./node-stream.ts";

let stateServer: ToyStateServer;

beforeEach(async () => {
  stateServer = await ToyStateServer.create();
  await stateServer.listen();
});

afterEach(() => stateServer.remove());

test("a peer that was there, and then says nothing any more, is found by the keepalive", async () => {
  const path = join(stateServer.directory, "between.sock");
  const halves: Socket[] = [];
  const between = createServer((socket) => {
    const further = connect(stateServer.path);
    halves.push(socket, further);
    for (const half of [socket, further]) half.on("error", () => half.destroy());
    socket.pipe(further).pipe(socket);
  }).listen(path);
  await once(between, "listening");
  const welcomed = Promise.withResolvers<void>();
  const stream = await openByteStream(`unix://${path}`, {
    path: WATCH_PATH,
    tls: undefined,
    keepaliveMs: 100,
    keepaliveTimeoutMs: 100,
    onMessage: () => welcomed.resolve(),
  });
  await welcomed.promise;
  // As in a process that was stopped, or behind a cable that was pulled.
  for (const half of halves) half.unpipe().pause();
  expect((await stream.ended).message).toMatch(/^\[feed_lost\] the node-state API ended the stream \(.*(keepalive|Connection dropped)/i);
  for (const half of halves) half.destroy();
  between.close();
});

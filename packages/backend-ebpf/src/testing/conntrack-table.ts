// What conntrack knows of one flow, asked and told over netlink before the call returns.
import type { Packet } from "@turnout/conformance";
import { decodeAddress, encodeAddress } from "../bytes/layout.ts";
import { AF, c, SOCKET, sure } from "./calls.ts";

/** A flow's first packet, with the port it comes from. */
export interface FlowKey extends Pick<Packet, "family" | "source" | "destination" | "port"> {
  readonly sourcePort: number;
  /** Its number in IP. */
  readonly protocol: number;
}

/** Whom a flow really goes to, and as whom: the other way round of what its answers look like. */
export interface TrackedFlow {
  readonly toAddress: string;
  readonly toPort: number;
  readonly fromAddress: string;
}

/** @source linux/netlink.h NETLINK_NETFILTER */
const NETFILTER = 12;
// @source linux/netfilter/nfnetlink_conntrack.h
const NEW = 0x100;
const GET = 0x101;
const DELETE = 0x102;
const TIMEOUT = 7;
// @source linux/netlink.h
const REQUEST = 1;
const ACKNOWLEDGE = 4;
const CREATE = 0x400;
const ERROR = 2;
/** Longer than a test takes. */
const NOTED_SECONDS = 3600;
const TUPLE = { original: 1, reply: 2, ip: 1, protocol: 2 } as const;
const NESTED = 0x8000;
const HEADER = 16;
const NETFILTER_HEADER = 4;

/** Conntrack of the network namespace in which it is made. */
export class ConntrackTable {
  readonly #socket = sure(c.socket(AF.netlink, SOCKET.raw, NETFILTER), "socket");
  readonly #answer = Buffer.alloc(4096);

  /** Undefined: conntrack doesn't know it. */
  find(key: FlowKey): TrackedFlow | undefined {
    const message = this.#ask(GET, REQUEST, key);
    if (message.readUInt16LE(4) === ERROR) return undefined;
    const reply = attributeIn(message, HEADER + NETFILTER_HEADER, message.length, TUPLE.reply);
    return reply === undefined ? undefined : readTuple(reply);
  }

  /** Forget it; tells whether it was there. */
  forget(key: FlowKey): boolean {
    return isDone(this.#ask(DELETE, REQUEST | ACKNOWLEDGE, key));
  }

  /** Know it as one that goes where it was sent. */
  note(key: FlowKey): void {
    const timeout = attribute(TIMEOUT, Buffer.from([0, 0, NOTED_SECONDS >> 8, NOTED_SECONDS & 255]));
    const back: FlowKey = { ...key, source: key.destination, destination: key.source, port: key.sourcePort, sourcePort: key.port };
    const message = this.#ask(NEW, REQUEST | ACKNOWLEDGE | CREATE, key, [tupleOf(back, TUPLE.reply), timeout]);
    if (!isDone(message)) throw new Error("conntrack takes no flow");
  }

  close(): void {
    c.close(this.#socket);
  }

  /** A question is answered anyway; its acknowledgement would be a second answer. */
  #ask(type: number, flags: number, key: FlowKey, more: readonly Buffer[] = []): Buffer {
    const header = Buffer.alloc(HEADER + NETFILTER_HEADER);
    header.writeUInt16LE(type, 4);
    header.writeUInt16LE(flags, 6);
    header[HEADER] = key.family === "IPv4" ? AF.inet : AF.inet6;
    const message = Buffer.concat([header, tupleOf(key, TUPLE.original), ...more]);
    message.writeUInt32LE(message.length, 0);
    sure(c.sendto(this.#socket, message, message.length, 0, null, 0), "conntrack is asked");
    const length = sure(c.recv(this.#socket, this.#answer, this.#answer.length, 0), "conntrack answers");
    return this.#answer.subarray(0, length);
  }
}

function attribute(type: number, data: Buffer): Buffer {
  const bytes = Buffer.alloc((4 + data.length + 3) & ~3);
  bytes.writeUInt16LE(4 + data.length, 0);
  bytes.writeUInt16LE(type, 2);
  data.copy(bytes, 4);
  return bytes;
}

/** An acknowledgement is an error whose number is 0. */
function isDone(message: Buffer): boolean {
  return message.readUInt16LE(4) === ERROR && message.readInt32LE(HEADER) === 0;
}

function tupleOf({ family, source, destination, port, sourcePort, protocol }: FlowKey, which: number): Buffer {
  const isIPv4 = family === "IPv4";
  const ip = (text: string): Buffer => encodeAddress(text).subarray(isIPv4 ? 12 : 0);
  const be = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
  const [from, to] = isIPv4 ? [1, 2] : [3, 4];
  const addresses = attribute(TUPLE.ip | NESTED, Buffer.concat([attribute(from, ip(source)), attribute(to, ip(destination))]));
  const ports = Buffer.concat([attribute(1, Buffer.from([protocol])), attribute(2, be(sourcePort)), attribute(3, be(port))]);
  return attribute(which | NESTED, Buffer.concat([addresses, attribute(TUPLE.protocol | NESTED, ports)]));
}

function attributeIn(bytes: Buffer, from: number, to: number, wanted: number): Buffer | undefined {
  for (let at = from; at + 4 <= to;) {
    const length = bytes.readUInt16LE(at);
    if ((bytes.readUInt16LE(at + 2) & 0x3fff) === wanted) return bytes.subarray(at + 4, at + length);
    at += (length + 3) & ~3;
  }
  return undefined;
}

/** Of an answer: it comes from where the flow goes. */
function readTuple(reply: Buffer): TrackedFlow {
  const ip = attributeIn(reply, 0, reply.length, TUPLE.ip) ?? Buffer.alloc(0);
  const ports = attributeIn(reply, 0, reply.length, TUPLE.protocol) ?? Buffer.alloc(0);
  const address = (four: number, six: number): string => {
    const bytes = attributeIn(ip, 0, ip.length, four);
    return bytes === undefined ? decodeAddress(attributeIn(ip, 0, ip.length, six) ?? Buffer.alloc(16)) : [...bytes].join(".");
  };
  return {
    toAddress: address(1, 3),
    toPort: attributeIn(ports, 0, ports.length, 2)?.readUInt16BE(0) ?? 0,
    fromAddress: address(2, 4),
  };
}

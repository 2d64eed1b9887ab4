import { connect, type ClientHttp2Session } from "node:http2";
import { connect as connectSocket } from "node:net";
import { PACKED_ROWS, wire, wireSettings } from "@turnout/client/protocol";
import type { NodeSettings } from "@turnout/core";
import { readPart } from "./change-set-head.ts";
import type { PartHead } from "./change-set-head.ts";

const WATCH_PATH = "/turnout.node.v1.NodeState/Watch";
/** Families as on the wire. */
const FAMILIES: readonly wire.Family[] = [1, 2];
/** gRPC's frame: a byte for compression, four for the length. */
const FRAME_BYTES = 5;
const WINDOW_BYTES = 16 * 1024 * 1024;

/** A connection over which watchers open streams. */
export interface WatchConnection {
  readonly session: ClientHttp2Session;
  close(): void;
}

/** Connect to a node-state server on a unix socket. HTTP/2 as it stands, so that the client costs as little as a client can. */
export function openConnection(path: string): WatchConnection {
  const session = connect("http://localhost", {
    createConnection: () => connectSocket(path),
    settings: { initialWindowSize: WINDOW_BYTES },
  });
  session.setMaxListeners(0);
  session.on("error", (error: Error) => {
    if (!session.destroyed) throw error;
  });
  session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
  return { session, close: () => session.destroy() };
}

/**
 * Open a watcher that asks for both families, and again as soon as an answer is whole, as ours do. `heard` is called for each
 * part, after the next change set is asked for if it was the last.
 */
export function openWatcher(connection: WatchConnection, nodeName: string, settings: NodeSettings, heard: (part: PartHead) => void): void {
  const write = openStream(connection, WATCH_PATH, (message) => {
    const part = readPart(message);
    if (part === undefined) return;
    if (!part.more) ask(part.family as wire.Family, part.instance, part.revision);
    heard(part);
  });
  const send = (request: wire.WatchRequest): void => write(framed(wire.WatchRequest.encode(request).finish()));
  const ask = (family: wire.Family, instance: string, revision: number): void =>
    send({ request: { $case: "ask", value: { family, instance, revision } } });
  const hello = { nodeName, settings: wireSettings(settings), bindAddress: "", version: "bench", capabilities: [PACKED_ROWS] };
  send({ request: { $case: "hello", value: hello } });
  for (const family of FAMILIES) ask(family, "", 0);
}

type Hear = (message: Buffer) => void;
type Fail = (error: Error) => void;

/** Open a gRPC stream whose messages are heard as they come; gives what writes to it. `fail` hears of its end before the connection's; default: it is thrown. */
export function openStream({ session }: WatchConnection, path: string, hear: Hear, fail: Fail = thrown): (bytes: Buffer) => void {
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
  const ended = (why: string): void => {
    if (!session.destroyed) fail(new Error(`a watcher lost its node-state server: ${why}`));
  };
  const frames = new FrameReader(hear);
  stream.on("data", (bytes: Buffer) => frames.receive(bytes));
  stream.on("trailers", (trailers) => ended(JSON.stringify(trailers)));
  stream.on("error", (error: Error) => ended(error.message));
  return (bytes) => void stream.write(bytes);
}

function thrown(error: Error): never {
  throw error;
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(FRAME_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, FRAME_BYTES);
  return frame;
}

/** Cuts what comes into messages. */
class FrameReader {
  readonly #hear: Hear;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Of the frame that is coming. */
  #wanted = FRAME_BYTES;

  /** `hear` gets each message, without its frame. */
  constructor(hear: Hear) {
    this.#hear = hear;
  }

  /** Take a piece of what comes; `hear` is called for each message that is whole with it. */
  receive(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#bytes += bytes.length;
    // Joined only when a frame is whole: it comes in pieces of 16 KiB.
    while (this.#bytes >= this.#wanted) {
      const all = this.#pieces.length === 1 && this.#pieces[0] !== undefined ? this.#pieces[0] : Buffer.concat(this.#pieces);
      this.#wanted = FRAME_BYTES + all.readUInt32BE(1);
      const isWhole = all.length >= this.#wanted;
      const rest = isWhole ? all.subarray(this.#wanted) : all;
      if (isWhole) this.#hear(all.subarray(FRAME_BYTES, this.#wanted));
      if (isWhole) this.#wanted = FRAME_BYTES;
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
    }
  }
}

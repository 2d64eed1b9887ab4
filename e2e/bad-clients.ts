import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { WATCH_PATH, wire, wireSettings } from "@turnout/client/protocol";
import { DEFAULT_SETTINGS } from "@turnout/core";

/** A client that is of no use to anybody. */
export interface BadClient {
  close(): void;
}

/** gRPC's frame around a message. */
function framed(request: wire.WatchRequest["request"]): Buffer {
  const bytes = Buffer.from(wire.WatchRequest.encode({ request }).finish());
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Ask a node-state server for everything of a node, and let it send nothing of it. */
export async function openUnread(path: string, nodeName: string): Promise<BadClient> {
  const socket = connect(path);
  // No window: what is sent for this stream stays with the sender.
  const session = connectHttp2("http://localhost", { createConnection: () => socket, settings: { initialWindowSize: 0 } });
  session.on("error", () => session.destroy());
  await once(session, "remoteSettings");
  const stream = session.request({ ":method": "POST", ":path": WATCH_PATH, "content-type": "application/grpc", te: "trailers" });
  stream.on("error", () => stream.destroy());
  const hello = { nodeName, settings: wireSettings(DEFAULT_SETTINGS), bindAddress: "", version: "deaf", capabilities: [] };
  stream.write(framed({ $case: "hello", value: hello }));
  stream.write(framed({ $case: "ask", value: { family: 1, instance: "", revision: 0 } }));
  return { close: () => session.destroy() };
}

/** Send a node-state server what is no request, and wait until it hangs up, or for what it says. */
export async function sayNonsense(path: string): Promise<void> {
  const socket = connect(path);
  socket.on("error", () => socket.destroy());
  socket.resume();
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000));
  await once(socket, "close");
}

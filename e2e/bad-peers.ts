import { createServer } from "node:http2";
import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Treatment } from "./interceptor.ts";

const GRPC: OutgoingHttpHeaders = { ":status": 200, "content-type": "application/grpc" };
/** Far beyond what a client takes. */
const HUGE_BYTES = 0x7f_ff_ff_ff;

/** Speak HTTP/2, and answer each stream so. */
function overHttp2(answer: (stream: ServerHttp2Stream) => void): Treatment {
  const server = createServer();
  server.on("stream", (stream) => {
    stream.on("error", () => stream.destroy());
    answer(stream);
  });
  server.on("sessionError", (_error, session) => session.destroy());
  return (socket) => void server.emit("connection", socket);
}

/** The beginning of a gRPC message that says it has so many bytes. */
function head(bytes: number): Buffer {
  const five = Buffer.alloc(5);
  five.writeUInt32BE(bytes, 1);
  return five;
}

/** Peers that are no node-state server, by what they do. */
export const BAD_PEERS: Readonly<Record<string, Treatment>> = {
  "speaks something else": (socket) => void socket.end("SSH-2.0-OpenSSH_9.2\r\n"),
  "speaks HTTP/2 and no gRPC": overHttp2((stream) => {
    stream.respond({ ":status": 404, "content-type": "text/html" });
    stream.end("<h1>not here</h1>");
  }),
  "ends in the middle of a message": overHttp2((stream) => {
    stream.respond(GRPC, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.write(head(100));
    stream.end(Buffer.alloc(10, 1));
  }),
  "announces a huge message": overHttp2((stream) => {
    stream.respond(GRPC);
    stream.write(head(HUGE_BYTES));
    stream.write(Buffer.alloc(1_000_000, 1));
  }),
  "sends a message of nonsense": overHttp2((stream) => {
    stream.respond(GRPC);
    stream.write(Buffer.concat([head(3), Buffer.from([0xff, 0xff, 0xff])]));
  }),
};

/** Takes the connection, and says nothing. */
export const SILENT: Treatment = (socket) => void socket.resume();

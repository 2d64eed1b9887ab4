import { GLOBAL_WATCH_PATH } from "@turnout/kpng";
import { FrameReader } from "./watch-client.ts";
import type { WatchConnection } from "./watch-client.ts";

/** What a watcher of kpng's was sent until it had everything. */
export interface KpngFirstState {
  /** From the request to the Sync. */
  readonly ms: number;
  readonly messages: number;
  readonly bytes: number;
}

/** A `GlobalWatchReq`, which is empty, as gRPC frames it. */
const REQUEST = Buffer.alloc(5);
/** An OpItem that is a Sync. */
const SYNC = Buffer.from([0x0a, 0x00]);

/** Watch the whole cluster by kpng's globalv1, and count what comes; the stream stays open. HTTP/2 as it stands, as {@link openWatcher} has it. */
export function watchCluster({ session }: WatchConnection): Promise<KpngFirstState> {
  const startMs = performance.now();
  const headers = { ":method": "POST", ":path": GLOBAL_WATCH_PATH, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request(headers);
  return new Promise((resolve, reject) => {
    let [messages, bytes] = [0, 0];
    const frames = new FrameReader((message) => {
      messages += 1;
      bytes += message.length;
      if (message.equals(SYNC)) resolve({ ms: performance.now() - startMs, messages, bytes });
    });
    stream.on("data", (piece: Buffer) => frames.receive(piece));
    stream.on("trailers", (trailers) => reject(new Error(`a watcher of kpng's lost its node-state server: ${JSON.stringify(trailers)}`)));
    stream.on("error", (error: Error) => {
      if (!session.destroyed) reject(error);
    });
    stream.write(REQUEST);
  });
}

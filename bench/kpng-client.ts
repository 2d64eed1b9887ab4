import { GLOBAL_WATCH_PATH } from "@turnout/kpng";
import { openStream } from "./watch-client.ts";
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
export function watchCluster(connection: WatchConnection): Promise<KpngFirstState> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    let [messages, bytes] = [0, 0];
    const hear = (message: Buffer): void => {
      messages += 1;
      bytes += message.length;
      if (message.equals(SYNC)) resolve({ ms: performance.now() - startMs, messages, bytes });
    };
    openStream(connection, GLOBAL_WATCH_PATH, hear, reject)(REQUEST);
  });
}

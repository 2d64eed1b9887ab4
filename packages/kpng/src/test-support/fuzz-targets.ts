import { DEFAULT_SETTINGS, FAMILIES, NodeView, OBJECT_KINDS, ProxyError, Store } from "@turnout/core";
import type { FuzzTarget } from "@turnout/house/fuzz";
import { KpngObjects } from "../link/kpng-objects.ts";
import { OpCollector } from "../link/op-collector.ts";

/** Messages one after the other, each with two bytes in front that say how long it is. */
function readKpng(input: Buffer): void {
  const store = new Store();
  const objects = new KpngObjects(store, "node1", () => undefined);
  const ops = new OpCollector();
  for (let at = 0; at + 2 <= input.length; at += 2 + input.readUInt16BE(at)) {
    const message = Buffer.from(input.subarray(at + 2, at + 2 + input.readUInt16BE(at)));
    try {
      const news = ops.receive(message);
      if (news !== undefined) objects.apply(news);
    } catch (error) {
      throw ProxyError.from(error, "feed_lost", "what the other side sent is no message of kpng's protocols");
    }
  }
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  for (const family of FAMILIES) new NodeView(store, { nodeName: "node1", family, settings: DEFAULT_SETTINGS }).pull();
}

/** What reads kpng's protocols. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [{ name: "kpng", form: "bytes", run: readKpng }];

/**
 * kpng's protocols, both ways: served from a store, next to the node-state API, and followed as a client of a kpng server.
 *
 * @packageDocumentation
 */
import type { OtherProtocol, OtherProtocolOptions } from "@turnout/client/protocol";
import { KpngLink } from "./link/kpng-link.ts";

export { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "./link/paths.ts";
export { createKpngApi } from "./server/kpng-services.ts";

/** Follow a kpng server as a client of the node-state API would follow its server. Opens nothing yet. */
export function createKpngLink(options: OtherProtocolOptions): OtherProtocol {
  return new KpngLink(options);
}

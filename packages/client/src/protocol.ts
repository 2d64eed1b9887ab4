/**
 * The node-state protocol itself: messages, and the way between them and core's model. For those who serve it or write
 * another client; programs that follow a brain need none of this.
 *
 * @packageDocumentation
 */
export { DESCRIPTORS } from "./gen/descriptors.ts";
export * as globalv1 from "./gen/kpng/globalv1/globalv1.ts";
export * as localv1 from "./gen/kpng/localv1/localv1.ts";
export * as wire from "./gen/turnout/node/v1/node.ts";
export { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "./kpng/paths.ts";
export type { Eligibility } from "./run/health.ts";
export { MESSAGE_BYTES_MAX, openNodeStream, WATCH_PATH } from "./watch/node-stream.ts";
export { NodeLink } from "./watch/node-link.ts";
export type { NodeStream } from "./watch/node-stream.ts";
export { parseTarget } from "./watch/target.ts";
export type { Target, TlsFiles } from "./watch/target.ts";
export { DeliveryReader, encodeDelivery } from "./wire/change-set-codec.ts";
export type { Delivery, EncodeOptions } from "./wire/change-set-codec.ts";
export { readSettings, wireSettings } from "./wire/node-codec.ts";
export { encodeRow } from "./wire/row-codec.ts";
export { FAMILY_WORDS } from "./wire/words.ts";
export type { Words } from "./wire/words.ts";

/**
 * The node-state protocol itself: messages, and the way between them and core's model. For those who serve it or write
 * another client; programs that follow a node-state server need none of this.
 *
 * @packageDocumentation
 */
export { DESCRIPTORS } from "./gen/descriptors.ts";
export * as wire from "./gen/turnout/node/v1/node.ts";
export type { Eligibility } from "./api/eligibility.ts";
export { MESSAGE_BYTES_MAX, openByteStream, openNodeStream, WATCH_PATH } from "./api/watch/node-stream.ts";
export { NodeLink } from "./api/watch/node-link.ts";
export type { OtherProtocol, OtherProtocolOptions } from "./api/watch/other-protocol.ts";
export type { NodeStream } from "./api/watch/node-stream.ts";
export { parseTarget } from "./api/watch/target.ts";
export type { ApiTarget, TlsFiles } from "./api/watch/target.ts";
export { DeliveryReader, encodeDelivery } from "./api/wire/change-set-codec.ts";
export type { Delivery, EncodeOptions } from "./api/wire/change-set-codec.ts";
export { readSettings, wireSettings } from "./api/wire/node-codec.ts";
export { encodeSet, PACKED_ROWS, PackedReader, packRows } from "./api/wire/packed-rows.ts";
export { encodeRow } from "./api/wire/row-codec.ts";
export { FAMILY_WORDS, notUnderstood } from "./api/wire/words.ts";
export type { Words } from "./api/wire/words.ts";

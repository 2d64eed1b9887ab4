import type { NetlinkChannel } from "./channel.ts";
import { errno, kernelError } from "./errno.ts";
import { attribute, findAttribute, zeroEnded } from "./message.ts";

/** Type of the messages that ask about families. @source linux/genetlink.h GENL_ID_CTRL */
const GENL_ID_CTRL = 16;
const CTRL_VERSION = 2;
// @source linux/genetlink.h
const CTRL_CMD_GETFAMILY = 3;
const CTRL_ATTR = { familyId: 1, familyName: 2 } as const;

/** Bytes before the attributes of a generic netlink message: command, version, and two that are reserved. */
export const GENL_HEADER_LENGTH = 4;

/** Write the payload of a generic netlink message. @source linux/genetlink.h struct genlmsghdr */
export function genericPayload(command: number, version: number, ...attributes: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.of(command, version, 0, 0), ...attributes]);
}

/** The body of the question for a family's id. */
export function familyRequest(name: string): Buffer {
  return genericPayload(CTRL_CMD_GETFAMILY, CTRL_VERSION, attribute(CTRL_ATTR.familyName, zeroEnded(name)));
}

/** Read the answer to {@link familyRequest}; undefined when it holds no id. */
export function parseFamilyId(payload: Buffer): number | undefined {
  return findAttribute(payload, CTRL_ATTR.familyId, GENL_HEADER_LENGTH)?.readUInt16LE(0);
}

/**
 * Ask for the number that messages of a family have as their type; the kernel loads the module that has it, where it can.
 *
 * Edges: undefined where the kernel knows no such family.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
export async function findFamily(channel: NetlinkChannel, name: string): Promise<number | undefined> {
  let id: number | undefined;
  const outcome = await channel.request(GENL_ID_CTRL, familyRequest(name), (_, payload) => {
    id ??= parseFamilyId(payload);
  });
  if (outcome === errno("ENOENT")) return undefined;
  if (outcome !== 0) throw kernelError(outcome, "a family of generic netlink can't be asked for", { object: name });
  return id;
}

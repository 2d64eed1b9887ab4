import { errno, kernelError } from "../netlink/errno.ts";
import { readSocketOption } from "../netlink/socket-option.ts";

// @source linux/ip_vs.h IP_VS_SO_GET_INFO, IP_VS_SO_GET_SERVICES
const GET_INFO = 1153;
const GET_SERVICES = 1154;
/** @source struct ip_vs_getinfo */
const INFO_BYTES = 12;
const INFO_COUNT = 8;
/** Of which what comes before the counts of packets is settings. @source struct ip_vs_service_entry */
const ENTRY = { bytes: 104, settings: 48, realServers: 44 } as const;
/** @source struct ip_vs_get_services */
const HEAD_BYTES = 8;

/** IPVS of one network namespace in short: what is otherwise once somebody has added or removed something. */
export interface IpvsSummary {
  readonly virtualServers: number;
  /** Of all of them together. */
  readonly realServers: number;
  /** Of the settings of virtual servers, and of how many real servers each has. */
  readonly digest: number;
}

/**
 * Summarize the virtual servers of IPv4 in two calls; 10,000 of them take some milliseconds.
 *
 * Edges: weights and addresses of real servers, and virtual servers of IPv6, are not in it: the kernel tells them to netlink alone.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export function summarizeIpvs(): IpvsSummary {
  const info = Buffer.alloc(INFO_BYTES);
  check(readSocketOption("IPv4", GET_INFO, info));
  const count = info.readUInt32LE(INFO_COUNT);
  const answer = Buffer.alloc(HEAD_BYTES + count * ENTRY.bytes);
  answer.writeUInt32LE(count);
  check(readSocketOption("IPv4", GET_SERVICES, answer));
  let realServers = 0;
  let digest = 0;
  for (let at = HEAD_BYTES; at < answer.length; at += ENTRY.bytes) {
    realServers += answer.readUInt32LE(at + ENTRY.realServers);
    for (let word = at; word < at + ENTRY.settings; word += 4) digest = (Math.imul(digest, 31) + answer.readInt32LE(word)) | 0;
  }
  return { virtualServers: count, realServers, digest };
}

function check(error: number): void {
  if (error !== 0 && error !== errno("ENOENT")) throw kernelError(error, "IPVS can't be summarized");
}

import { errno, kernelError } from "../netlink/errno.ts";
import { readSocketOption } from "../netlink/socket.ts";
import { mixed, partOfChecksum, PARTS } from "./model/parts.ts";

// @source linux/ip_vs.h IP_VS_SO_GET_INFO, IP_VS_SO_GET_SERVICES
const GET_INFO = 1153;
const GET_SERVICES = 1154;
const WORD = Int32Array.BYTES_PER_ELEMENT;
/** In words. @source struct ip_vs_getinfo */
const INFO = { words: 3, count: 2 } as const;
/** In words; what comes before the counts of packets is settings. @source struct ip_vs_service_entry */
const ENTRY = { words: 26, protocol: 0, address: 1, port: 2, mark: 3, realServers: 11, settings: 12 } as const;
/** In words. @source struct ip_vs_get_services */
const HEAD = 2;

/** IPVS of one network namespace in short: what is otherwise once somebody has added or removed something. */
export interface IpvsSummary {
  readonly virtualServers: number;
  /** Of all of them together. */
  readonly realServers: number;
  /** For each part, as of `partOf`: of the settings of its virtual servers, and of how many real servers each has. */
  readonly checksums: Int32Array;
}

/**
 * Summarize the virtual servers of IPv4 in two calls; 10,000 of them take a millisecond.
 *
 * Edges: weights and addresses of real servers, and virtual servers of IPv6, are not in it: `checksumIpvs` reads them.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export function summarizeIpvs(): IpvsSummary {
  const info = new Int32Array(INFO.words);
  ask(GET_INFO, info);
  const count = info[INFO.count] ?? 0;
  const answer = new Int32Array(HEAD + count * ENTRY.words);
  answer[0] = count;
  ask(GET_SERVICES, answer);
  return readSummary(answer);
}

/** Read what the kernel answers. Edges: it may leave room empty: others may have removed some meanwhile. Pure. */
export function readSummary(answer: Int32Array): IpvsSummary {
  const checksums = new Int32Array(PARTS);
  let [virtualServers, realServers] = [0, 0];
  for (let at = HEAD; at < answer.length; at += ENTRY.words) {
    if (answer[at + ENTRY.protocol] === 0 && answer[at + ENTRY.mark] === 0) continue;
    virtualServers += 1;
    realServers += answer[at + ENTRY.realServers] ?? 0;
    let digest = 0;
    for (let word = at; word < at + ENTRY.settings; word += 1) digest = mixed(digest, answer[word] ?? 0);
    const part = partOfChecksum(mixed(mixed(0, netOrder(answer[at + ENTRY.address] ?? 0)), netOrder(answer[at + ENTRY.port] ?? 0) >>> 16));
    checksums[part] = (checksums[part] ?? 0) + digest;
  }
  return { virtualServers, realServers, checksums };
}

/** The number that four bytes in the order of the network are, read in the order of this machine. */
function netOrder(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}

function ask(name: number, words: Int32Array): void {
  const error = readSocketOption("IPv4", name, new Uint8Array(words.buffer, 0, words.length * WORD));
  if (error !== 0 && error !== errno("ENOENT")) throw kernelError(error, "IPVS can't be summarized");
}

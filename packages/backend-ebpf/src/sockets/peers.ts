import { hostPort } from "@turnout/core/backend";
import type { FlowFilter } from "@turnout/core/backend";
import type { BpfMap, RemoteEnd } from "@turnout/host/bpf";
import { decodeAddress, encodeAddress, STRUCTS } from "../bytes/layout.ts";

/** A UDP socket whose endpoint does not serve any more what it asked for. */
export interface StuckPeer {
  /** The socket's cookie. */
  readonly socket: bigint;
  readonly endpoint: RemoteEnd;
  /** Its key in `asked_udp`. */
  readonly key: Buffer;
}

/** Of a port, or an address and a port, which endpoints do not serve. */
type EndsOf = ReadonlyMap<string, readonly ((endpoint: string) => boolean)[]>;

const END = STRUCTS.endpoint.fields;
const PEER = STRUCTS.peer;
const IPV4_BYTES = encodeAddress("0.0.0.0").toString("latin1", 0, 12);

/**
 * Find the sockets in `asked_udp` whose endpoint does not serve any more what they asked for.
 *
 * Shape: elements are compared as bytes, and only those of changed Services are decoded: of the others there may be more than a hundred thousand.
 * @param flows all of one family, which `isIPv4` tells
 * @param isNodeAddress whether node ports answer on an address, as the maps have it
 * @source rules
 */
export async function findStuck(
  map: Pick<BpfMap, "read">,
  flows: readonly FlowFilter[],
  isIPv4: boolean,
  isNodeAddress: (address: Buffer) => boolean,
): Promise<readonly StuckPeer[]> {
  const byEnd = endsOf(flows.filter(({ address }) => address !== ""));
  const byNodePort = endsOf(flows.filter(({ address }) => address === ""));
  const stuck: StuckPeer[] = [];
  for await (const { count, keys, values } of map.read()) {
    for (let index = 0; index < count; index += 1) {
      const at = index * STRUCTS.endpoint.bytes;
      const port = values.toString("latin1", at + END.port[0], at + END.zero[0]);
      const asked = values.toString("latin1", at, at + END.zero[0]);
      let ends = byEnd.get(asked) ?? [];
      const nodePorts = byNodePort.get(port);
      if (nodePorts !== undefined && asked.startsWith(IPV4_BYTES) === isIPv4 && isNodeAddress(values.subarray(at, at + END.port[0])))
        ends = [...ends, ...nodePorts];
      if (ends.length === 0) continue;
      const key = keys.subarray(index * PEER.bytes, (index + 1) * PEER.bytes);
      const endpoint = readEnd(key.subarray(PEER.fields.endpoint[0]));
      const text = hostPort(endpoint.address, endpoint.port);
      if (ends.some((isGone) => isGone(text)))
        stuck.push({ socket: key.readBigUInt64LE(PEER.fields.socket[0]), endpoint, key: Buffer.from(key) });
    }
  }
  return stuck;
}

/** By what is asked, as in the maps: the address and the port; only the port where there is no address. */
function endsOf(flows: readonly FlowFilter[]): EndsOf {
  const all = new Map<string, ((endpoint: string) => boolean)[]>();
  for (const { address, port, keep, only } of flows) {
    const portBytes = Buffer.from([port >> 8, port & 255]).toString("latin1");
    const asked = address === "" ? portBytes : encodeAddress(address).toString("latin1") + portBytes;
    const [kept, meant] = [new Set(keep), only === undefined ? undefined : new Set(only)];
    const isGone = (endpoint: string): boolean => !kept.has(endpoint) && (meant === undefined || meant.has(endpoint));
    const others = all.get(asked);
    if (others === undefined) all.set(asked, [isGone]);
    else others.push(isGone);
  }
  return all;
}

function readEnd(bytes: Buffer): RemoteEnd {
  return { address: decodeAddress(bytes.subarray(END.address[0], END.port[0])), port: bytes.readUInt16BE(END.port[0]) };
}

import { familyOf } from "@turnout/core";
import type { IPFamily } from "@turnout/core/backend";
import type { BpfMap, RemoteEnd } from "@turnout/host/bpf";
import { decodeAddress, STRUCTS } from "./layout.ts";

/** What a socket asked for, and what it got. */
export interface Peer {
  /** The socket's cookie. */
  readonly socket: bigint;
  readonly endpoint: RemoteEnd;
  readonly asked: RemoteEnd;
}

/** Read what UDP sockets of a family asked for, from `asked_udp`, which remembers those that asked last. */
export async function* readPeers(map: Pick<BpfMap, "read">, family: IPFamily): AsyncGenerator<Peer> {
  const { bytes, fields } = STRUCTS.peer;
  for await (const { count, keys, values } of map.read()) {
    for (let index = 0; index < count; index += 1) {
      const asked = readEnd(values.subarray(index * STRUCTS.endpoint.bytes));
      if (familyOf(asked.address) !== family) continue;
      const key = keys.subarray(index * bytes);
      yield { socket: key.readBigUInt64LE(fields.socket[0]), endpoint: readEnd(key.subarray(fields.endpoint[0])), asked };
    }
  }
}

function readEnd(bytes: Buffer): RemoteEnd {
  const { address, port } = STRUCTS.endpoint.fields;
  return { address: decodeAddress(bytes.subarray(address[0], address[0] + address[1])), port: bytes.readUInt16BE(port[0]) };
}

import { hostPort, invariant, parseIP } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Protocol } from "@turnout/core/backend";
import type { Choice, ServiceValue } from "../objects.ts";

/** A field's offset and length in bytes. */
type Field = readonly [offset: number, bytes: number];

/** A struct of programs/layout.h, with its fields by their names in C. */
export interface Struct<Name extends string = string> {
  readonly bytes: number;
  readonly fields: Readonly<Record<Name, Field>>;
}

interface Structs {
  readonly destination: Struct<"address" | "port" | "protocol" | "zero">;
  readonly choice: Struct<"list" | "count" | "verdict" | "masquerade" | "zero">;
  readonly service: Struct<
    "row" | "tenant" | "ranges" | "affinity_seconds" | "flags" | "pod" | "host" | "outside" | "affinity_sets" | "zero"
  >;
  readonly source_range: Struct<"bits" | "ranges" | "address">;
  readonly pod_range: Struct<"bits" | "address">;
  readonly place: Struct<"list" | "index" | "zero">;
  readonly endpoint: Struct<"address" | "port" | "zero">;
  readonly counters: Struct<"connections" | "datagrams" | "rejects" | "drops" | "outside">;
  readonly settings: Struct<"host_namespace">;
  readonly peer: Struct<"socket" | "endpoint" | "is_sender">;
}

/** The structs that are written or read here, by their names in C; layout.test.ts has a compiler compare them. */
export const STRUCTS: Structs = {
  destination: { bytes: 20, fields: { address: [0, 16], port: [16, 2], protocol: [18, 1], zero: [19, 1] } },
  choice: { bytes: 16, fields: { list: [0, 8], count: [8, 4], verdict: [12, 1], masquerade: [13, 1], zero: [14, 2] } },
  service: {
    bytes: 88,
    fields: {
      row: [0, 8],
      tenant: [8, 8],
      ranges: [16, 8],
      affinity_seconds: [24, 4],
      flags: [28, 4],
      pod: [32, 16],
      host: [48, 16],
      outside: [64, 16],
      affinity_sets: [80, 4],
      zero: [84, 4],
    },
  },
  source_range: { bytes: 28, fields: { bits: [0, 4], ranges: [4, 8], address: [12, 16] } },
  pod_range: { bytes: 20, fields: { bits: [0, 4], address: [4, 16] } },
  place: { bytes: 16, fields: { list: [0, 8], index: [8, 4], zero: [12, 4] } },
  endpoint: { bytes: 20, fields: { address: [0, 16], port: [16, 2], zero: [18, 2] } },
  counters: { bytes: 40, fields: { connections: [0, 8], datagrams: [8, 8], rejects: [16, 8], drops: [24, 8], outside: [32, 8] } },
  settings: { bytes: 8, fields: { host_namespace: [0, 8] } },
  peer: { bytes: 32, fields: { socket: [0, 8], endpoint: [8, 20], is_sender: [28, 4] } },
};

/** The numbers of `enum verdict`; 0 is PASS, which no element has. */
export const VERDICTS: Readonly<Record<Choice["verdict"], number>> = { serve: 1, reject: 2, drop: 3 };

/** Flags of `struct service`. */
export const SERVICE_FLAGS = { PODS_PASS: 1, HOST_PASS: 2, CLUSTER_IP: 4 } as const;

/** Flags of `node_addresses`. */
export const ADDRESS_FLAGS = { OWN: 1, NODE_PORTS: 2, LISTENERS: 4 } as const;

/** A list has fewer endpoints than this: programs find one of them by halving (HALVINGS of choose.h). */
export const LIST_MAX: number = 2 ** 20;

/** @source linux/in.h */
const PROTOCOLS: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };

/** Each family's unspecified address, which stands for it in keys. */
export const UNSPECIFIED: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0", IPv6: "::" };

const MAPPED = Buffer.from("00000000000000000000ffff", "hex");

/** An address as programs have it: 16 bytes, IPv4 as ::ffff:a.b.c.d. @throws {ProxyError} `invalid_object`. */
export function encodeAddress(text: string): Buffer {
  const ip = parseIP(text);
  if (ip === undefined) throw new ProxyError("invalid_object", "this is no address", { object: text });
  if (ip.family === "IPv6") return Buffer.from(ip.value.toString(16).padStart(32, "0"), "hex");
  const bytes = Buffer.alloc(16);
  MAPPED.copy(bytes);
  bytes.writeUInt32BE(Number(ip.value), 12);
  return bytes;
}

/** Undoes {@link encodeAddress}; canonical. */
export function decodeAddress(bytes: Buffer): string {
  const isIPv4 = bytes.subarray(0, 12).equals(MAPPED);
  const text = isIPv4 ? [...bytes.subarray(12, 16)].join(".") : (bytes.toString("hex", 0, 16).match(/.{4}/g) ?? []).join(":");
  const ip = parseIP(text);
  invariant(ip !== undefined, "16 bytes are an address");
  return ip.text;
}

/** `ip:port` as `struct endpoint`. @throws {ProxyError} `invalid_object`. */
export function encodeEndpoint(text: string): Buffer {
  const { address, port } = splitHostPort(text);
  const { bytes, fields } = STRUCTS.endpoint;
  const endpoint = Buffer.alloc(bytes);
  encodeAddress(address).copy(endpoint, fields.address[0]);
  endpoint.writeUInt16BE(port, fields.port[0]);
  return endpoint;
}

/** Undoes {@link encodeEndpoint}. */
export function decodeEndpoint(bytes: Buffer): string {
  const { address, port } = STRUCTS.endpoint.fields;
  return hostPort(decodeAddress(bytes.subarray(address[0], address[0] + address[1])), bytes.readUInt16BE(port[0]));
}

/** `ip:port/TCP` as `struct destination`. @throws {ProxyError} `invalid_object`. */
export function encodeDestination(key: string): Buffer {
  const slash = key.lastIndexOf("/");
  const { address, port } = splitHostPort(key.slice(0, slash));
  const protocol = PROTOCOLS[key.slice(slash + 1) as Protocol];
  const { bytes, fields } = STRUCTS.destination;
  const destination = Buffer.alloc(bytes);
  encodeAddress(address).copy(destination, fields.address[0]);
  destination.writeUInt16BE(port, fields.port[0]);
  destination.writeUInt8(protocol, fields.protocol[0]);
  return destination;
}

/** Undoes {@link encodeDestination}; undefined for a protocol that is none of ours. */
export function decodeDestination(bytes: Buffer): string | undefined {
  const { address, port, protocol } = STRUCTS.destination.fields;
  const number = bytes.readUInt8(protocol[0]);
  const name = Object.entries(PROTOCOLS).find(([, one]) => one === number)?.[0];
  if (name === undefined) return undefined;
  return `${hostPort(decodeAddress(bytes.subarray(address[0], address[0] + address[1])), bytes.readUInt16BE(port[0]))}/${name}`;
}

/** `struct service`. */
export function encodeService(value: ServiceValue): Buffer {
  const { bytes, fields } = STRUCTS.service;
  const service = Buffer.alloc(bytes);
  encodeId(value.row).copy(service, fields.row[0]);
  encodeId(value.tenant).copy(service, fields.tenant[0]);
  encodeId(value.ranges).copy(service, fields.ranges[0]);
  service.writeUInt32LE(value.affinitySeconds, fields.affinity_seconds[0]);
  service.writeUInt32LE(value.affinitySets, fields.affinity_sets[0]);
  const { PODS_PASS, HOST_PASS, CLUSTER_IP } = SERVICE_FLAGS;
  const flags = (value.podsPass ? PODS_PASS : 0) | (value.hostPass ? HOST_PASS : 0) | (value.isClusterIP ? CLUSTER_IP : 0);
  service.writeUInt32LE(flags, fields.flags[0]);
  for (const origin of ["pod", "host", "outside"] as const) encodeChoice(value[origin]).copy(service, fields[origin][0]);
  return service;
}

/** Undoes {@link encodeService}; undefined for a verdict that is none of ours. */
export function decodeService(bytes: Buffer): ServiceValue | undefined {
  const { fields } = STRUCTS.service;
  const [pod, host, outside] = [fields.pod, fields.host, fields.outside].map(([at, length]) =>
    decodeChoice(bytes.subarray(at, at + length)),
  );
  if (pod === undefined || host === undefined || outside === undefined) return undefined;
  const flags = bytes.readUInt32LE(fields.flags[0]);
  return {
    row: bytes.toString("hex", fields.row[0], fields.row[0] + fields.row[1]),
    tenant: bytes.toString("hex", fields.tenant[0], fields.tenant[0] + fields.tenant[1]),
    ranges: bytes.toString("hex", fields.ranges[0], fields.ranges[0] + fields.ranges[1]),
    affinitySeconds: bytes.readUInt32LE(fields.affinity_seconds[0]),
    affinitySets: bytes.readUInt32LE(fields.affinity_sets[0]),
    podsPass: (flags & SERVICE_FLAGS.PODS_PASS) !== 0,
    hostPass: (flags & SERVICE_FLAGS.HOST_PASS) !== 0,
    isClusterIP: (flags & SERVICE_FLAGS.CLUSTER_IP) !== 0,
    pod,
    host,
    outside,
  };
}

function encodeChoice({ verdict, list, count, masquerade }: Choice): Buffer {
  const { bytes, fields } = STRUCTS.choice;
  const choice = Buffer.alloc(bytes);
  encodeId(list).copy(choice, fields.list[0]);
  choice.writeUInt32LE(count, fields.count[0]);
  choice.writeUInt8(VERDICTS[verdict], fields.verdict[0]);
  choice.writeUInt8(masquerade ? 1 : 0, fields.masquerade[0]);
  return choice;
}

function decodeChoice(bytes: Buffer): Choice | undefined {
  const { fields } = STRUCTS.choice;
  const number = bytes.readUInt8(fields.verdict[0]);
  const verdict = (Object.keys(VERDICTS) as Choice["verdict"][]).find((one) => VERDICTS[one] === number);
  if (verdict === undefined) return undefined;
  return {
    verdict,
    list: bytes.toString("hex", fields.list[0], fields.list[0] + fields.list[1]),
    count: bytes.readUInt32LE(fields.count[0]),
    masquerade: bytes.readUInt8(fields.masquerade[0]) !== 0,
  };
}

/** `struct place`. */
export function encodePlace(list: string, index: number): Buffer {
  const { bytes, fields } = STRUCTS.place;
  const place = Buffer.alloc(bytes);
  encodeId(list).copy(place, fields.list[0]);
  place.writeUInt32LE(index, fields.index[0]);
  return place;
}

/** Undoes {@link encodePlace}. */
export function decodePlace(bytes: Buffer): { readonly list: string; readonly index: number } {
  const { list, index } = STRUCTS.place.fields;
  return { list: bytes.toString("hex", list[0], list[0] + list[1]), index: bytes.readUInt32LE(index[0]) };
}

/** The name of a row or list: its digits are the bytes as they lie in memory. */
export function encodeId(hex: string): Buffer {
  const bytes = Buffer.from(hex, "hex");
  invariant(bytes.length === 8, "names in the maps have 16 hexadecimal digits");
  return bytes;
}

/** A cookie of a network namespace, from decimal. */
export function encodeCookie(text: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(text));
  return bytes;
}

/** Undoes {@link encodeCookie}. */
export function decodeCookie(bytes: Buffer): string {
  return bytes.readBigUInt64LE(0).toString();
}

function splitHostPort(text: string): { readonly address: string; readonly port: number } {
  const colon = text.lastIndexOf(":");
  return { address: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}

import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  canonicalIP,
  isDNSName,
  parseCIDR,
  rowKey,
  type Destination,
  type Endpoint,
  type IPFamily,
  type Rule,
  type ServicePort,
  type ServicePortName,
} from "@turnout/core";
import * as wire from "../../gen/turnout/node/v1/node.ts";
import { KIND_WORDS, notUnderstood, ORIGIN_WORDS, PROTOCOL_WORDS, TARGET_WORDS, TOPOLOGY_WORDS } from "./words.ts";

const PORT_MAX = 65_535;
const PORT_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$|^$/;

/** Up to this size everything is written with one writer, whose buffer need not be made each time. */
const KEPT_BYTES_MAX = 131_072;
/** Not there while something is being written, and after what could not be. */
let keptWriter: BinaryWriter | undefined;

/** Get the bytes of what `write` writes. */
export function written(write: (writer: BinaryWriter) => void): Uint8Array {
  const writer = keptWriter ?? new BinaryWriter();
  keptWriter = undefined;
  write(writer);
  const bytes = writer.finish();
  if (bytes.length <= KEPT_BYTES_MAX) keptWriter = writer;
  return bytes;
}

/** Write a row as the bytes of a `turnout.node.v1.ServicePort`. */
export function encodeRow(row: ServicePort): Uint8Array {
  return written((writer) => void wire.ServicePort.encode(wireRow(row), writer));
}

/** Write rows as the bytes of a message that has them in a repeated field; `tag` is the field's number × 8 + 2. */
export function encodeRows(rows: readonly ServicePort[], tag: number): Uint8Array {
  return written((writer) => {
    for (const row of rows) wire.ServicePort.encode(wireRow(row), writer.uint32(tag).fork()).join();
  });
}

function wireRow(row: ServicePort): wire.ServicePort {
  return {
    namespace: row.name.namespace,
    name: row.name.name,
    portName: row.name.port,
    protocol: PROTOCOL_WORDS.write(row.name.protocol),
    createdMs: row.createdMs,
    endpoints: row.endpoints as wire.Endpoint[],
    cluster: row.cluster as number[],
    local: row.local as number[],
    topology: TOPOLOGY_WORDS.write(row.topology),
    destinations: row.destinations.map(wireDestination),
    affinitySeconds: row.affinitySeconds,
    internalLocal: row.internalLocal,
    externalLocal: row.externalLocal,
    healthCheck: row.healthCheck,
  };
}

function wireDestination({ kind, address, port, sourceRanges, rules }: Destination): wire.Destination {
  return {
    kind: KIND_WORDS.write(kind),
    address,
    port,
    sourceRanges: sourceRanges === undefined ? undefined : { cidrs: [...sourceRanges] },
    rules: rules.map(({ from, to, masquerade }) => ({ from: ORIGIN_WORDS.write(from), to: TARGET_WORDS.write(to), masquerade })),
  };
}

/** Write the identity of a row. */
export function wireName({ namespace, name, port, protocol }: ServicePortName): wire.RowName {
  return { namespace, name, portName: port, protocol: PROTOCOL_WORDS.write(protocol) };
}

/** Read the identity of a row to its name. @throws {ProxyError} `feed_lost` for a name that could not be one. */
export function readName({ namespace, name, portName, protocol }: wire.RowName): ServicePortName {
  if (!isDNSName(namespace)) throw notUnderstood("a namespace", namespace);
  if (!isDNSName(name)) throw notUnderstood("a Service's name", name);
  if (!PORT_NAME.test(portName)) throw notUnderstood("a port's name", portName);
  return { namespace, name, port: portName, protocol: PROTOCOL_WORDS.read(protocol) };
}

/** The key of a row name. */
export function keyOf({ namespace, name, port, protocol }: ServicePortName): string {
  return rowKey(namespace, name, port, protocol);
}

/**
 * Reads rows of one family.
 *
 * Edges: everything is checked again, because it comes from another process and ends in a kernel; of node names, which
 * repeat in every endpoint, one copy is kept.
 */
export class RowReader {
  readonly #family: IPFamily;
  readonly #names = new Map<string, string>();

  constructor(family: IPFamily) {
    this.#family = family;
  }

  /** Read one row. @throws {ProxyError} `feed_lost` for anything a row can't be. */
  read(message: wire.ServicePort): ServicePort {
    const name = readName(message);
    const endpoints = message.endpoints.map((endpoint) => this.#endpoint(endpoint));
    const { healthCheck, affinitySeconds, createdMs, internalLocal, externalLocal } = message;
    return {
      key: keyOf(name),
      name,
      family: this.#family,
      createdMs,
      endpoints,
      cluster: readPool(message.cluster, endpoints.length),
      local: readPool(message.local, endpoints.length),
      topology: TOPOLOGY_WORDS.read(message.topology),
      destinations: message.destinations.map((destination) => this.#destination(destination)),
      affinitySeconds,
      internalLocal,
      externalLocal,
      healthCheck: healthCheck === undefined ? undefined : { port: readPort(healthCheck.port), readyLocal: healthCheck.readyLocal },
    };
  }

  #address(text: string): string {
    const ip = canonicalIP(text);
    if (ip === undefined || ip.family !== this.#family || ip.text !== text) throw notUnderstood(`an ${this.#family} address`, text);
    return text;
  }

  #endpoint({ ip, port, nodeName, isLocal, ready, serving, terminating }: wire.Endpoint): Endpoint {
    return { ip: this.#address(ip), port: readPort(port), nodeName: this.#nodeName(nodeName), isLocal, ready, serving, terminating };
  }

  #nodeName(text: string | undefined): string | undefined {
    if (text === undefined) return undefined;
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    if (text !== "" && !isDNSName(text)) throw notUnderstood("a node's name", text);
    this.#names.set(text, text);
    return text;
  }

  #destination({ kind: number, address, port, sourceRanges, rules }: wire.Destination): Destination {
    const kind = KIND_WORDS.read(number);
    if (kind === "nodePort" ? address !== "" : this.#address(address) === "") throw notUnderstood("an address of a node port", address);
    const ranges = sourceRanges?.cidrs.map((cidr) => readCIDR(cidr, this.#family));
    const read = rules.map((rule): Rule => ({
      from: ORIGIN_WORDS.read(rule.from),
      to: TARGET_WORDS.read(rule.to),
      masquerade: rule.masquerade,
    }));
    if (read.at(-1)?.from !== "anyone") throw notUnderstood("rules that leave packets undecided", address);
    if (ranges === undefined && read.some(({ from }) => from === "outsideSourceRanges"))
      throw notUnderstood("a rule about source ranges without any", address);
    return { kind, address, port: readPort(port), ...(ranges === undefined ? {} : { sourceRanges: ranges }), rules: read };
  }
}

/** Read a port number. @throws {ProxyError} `feed_lost` outside 1–65535. */
export function readPort(port: number): number {
  if (port < 1 || port > PORT_MAX) throw notUnderstood("a port", port);
  return port;
}

/** Read a canonical CIDR of a family. @throws {ProxyError} `feed_lost`. */
export function readCIDR(text: string, family: IPFamily): string {
  const cidr = parseCIDR(text);
  if (cidr?.family !== family || cidr.text !== text) throw notUnderstood(`an ${family} range`, text);
  return text;
}

/** Indexes into the endpoints, ascending. */
function readPool(pool: readonly number[], length: number): readonly number[] {
  for (let at = 0; at < pool.length; at++) {
    const index = pool[at] ?? length;
    if (index >= length || (at > 0 && index <= (pool[at - 1] ?? length))) throw notUnderstood("a pool of endpoints", index);
  }
  return pool;
}

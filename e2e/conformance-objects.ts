import {
  affinityOf,
  formatWords,
  HOST_ADDRESSES,
  isReference,
  packetOf,
  seenOfVerdict,
  STAGE_NODE,
  STAGE_OBJECTS,
  STAGE_SETTINGS,
  verdictOf,
} from "@turnout/conformance";
import type { ObjectRef, OracleWorld, Packet, Probe, Scenario } from "@turnout/conformance";
import { abilitiesOf } from "@turnout/core";
import type { BackendModule, IPFamily, ObjectKind, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";

/** An endpoint's address, port and protocol. */
export interface Listener {
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** The API objects of a scenario, as its steps put and remove them, and what they mean. */
export interface StageObjects {
  put(object: RawObject): void;
  remove(ref: ObjectRef): void;
  /** Those that are there now and are not the stage's. */
  readonly refs: readonly ObjectRef[];
  /** Whether there ever was an affine Service. */
  readonly wasAffine: boolean;
  /** The first packet of a probe; a Service that was removed is remembered. @throws {Error} when it names what never was. */
  packet(probe: Probe, family: IPFamily, protocol: Protocol): Packet;
  /** The words a probe should end in: its own, or the oracle's where the backend's choices are other than the scenarios'. */
  words(probe: Probe, packet: Packet): string;
  /** Whether the packet's client is remembered by where it went. */
  isAffine(packet: Packet): boolean;
  /** Whether two packets are remembered apart, as where a backend remembers clients for each address. */
  areRememberedApart(one: Packet, other: Packet): boolean;
  /** Every place and port that some slice names as an endpoint. */
  listeners(): readonly Listener[];
}

const STAGE_KEYS: ReadonlySet<string> = new Set(STAGE_OBJECTS.map((object) => keyOf(refOf(object))));
const PROTOCOLS: ReadonlySet<unknown> = new Set<Protocol>(["TCP", "UDP", "SCTP"]);

/** Begin a scenario with the stage's own objects. */
export function createStageObjects(scenario: Scenario, module: BackendModule): StageObjects {
  const { settings, hostAddresses } = scenario;
  const present = new Map(STAGE_OBJECTS.map((object): [string, RawObject] => [keyOf(refOf(object)), object]));
  const services = new Map<string, RawObject>();
  const own = new Map<string, ObjectRef>();
  let wasAffine = false;
  const world = (): OracleWorld => ({
    objects: [...present.values()],
    nodeName: STAGE_NODE,
    settings: { ...STAGE_SETTINGS, ...settings },
    hostAddresses: {
      IPv4: [...HOST_ADDRESSES.IPv4, ...(hostAddresses?.IPv4 ?? [])],
      IPv6: [...HOST_ADDRESSES.IPv6, ...(hostAddresses?.IPv6 ?? [])],
    },
    nodePortAddressesDefault: module.nodePortAddressesDefault ?? [],
    ...abilitiesOf(module),
  });
  return {
    put: (object) => {
      const ref = refOf(object);
      present.set(keyOf(ref), object);
      if (!STAGE_KEYS.has(keyOf(ref))) own.set(keyOf(ref), ref);
      if (ref.kind === "Service") services.set(ref.name, object);
      wasAffine ||= fieldsOf(object["spec"])["sessionAffinity"] === "ClientIP";
    },
    remove: (ref) => {
      present.delete(keyOf(ref));
      own.delete(keyOf(ref));
    },
    get refs() {
      return [...own.values()];
    },
    get wasAffine() {
      return wasAffine;
    },
    packet: (probe, family, protocol) => packetOf(probe, family, protocol, services),
    words: (probe, packet) =>
      isReference(abilitiesOf(module)) ? probe.sees : formatWords(seenOfVerdict(verdictOf(world(), packet), packet.source)),
    isAffine: (packet) => wasAffine && affinityOf(world(), packet) !== undefined,
    areRememberedApart: (one, other) => {
      const [entry, another] = [affinityOf(world(), one), affinityOf(world(), other)];
      return entry !== undefined && another !== undefined && entry.key !== another.key;
    },
    listeners: () => [...present.values()].flatMap(listenersOf),
  };
}

function refOf(object: RawObject): ObjectRef {
  const { namespace = "default", name = "" } = fieldsOf(object["metadata"]);
  const kind = object["kind"] as ObjectKind;
  const isNamespaced = kind === "Service" || kind === "EndpointSlice";
  return { kind, namespace: isNamespaced ? String(namespace) : "", name: String(name) };
}

function keyOf({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

/** Scenarios hold malformed slices too: what is no endpoint is left out. */
function listenersOf(object: RawObject): readonly Listener[] {
  if (object["kind"] !== "EndpointSlice") return [];
  return listOf(object["endpoints"]).flatMap((endpoint) =>
    listOf(object["ports"]).flatMap((one) => {
      const { port, protocol = "TCP" } = fieldsOf(one);
      const [address] = listOf(fieldsOf(endpoint)["addresses"]);
      const isWhole = typeof address === "string" && isPort(port) && PROTOCOLS.has(protocol);
      return isWhole ? [{ address, port, protocol: protocol as Protocol }] : [];
    }),
  );
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

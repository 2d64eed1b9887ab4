import { abilitiesOf } from "@turnout/core";
import type { BackendModule, IPFamily, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { affinityOf } from "../oracle/affinity-of.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Packet } from "../oracle/packet.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import { fieldAt, listOf, packetOf } from "../runner/probe-packet.ts";
import { refKey, refOf } from "../runner/runner.ts";
import type { ObjectRef, Probe, Scenario } from "../runner/scenario.ts";
import { HOST_ADDRESSES, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS } from "../runner/stage.ts";
import { formatWords, seenOfVerdict } from "../runner/words.ts";
import { isReference } from "./scenario-run.ts";

/** An endpoint's address, port and protocol. */
export interface Listener {
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
}

const STAGE_KEYS: ReadonlySet<string> = new Set(STAGE_OBJECTS.map((object) => refKey(refOf(object))));
const PROTOCOLS: ReadonlySet<unknown> = new Set<Protocol>(["TCP", "UDP", "SCTP"]);

/** The API objects of a scenario, as its steps put and remove them, and what they mean. It begins with the stage's own. */
export class StageObjects {
  /** Whether there ever was an affine Service. */
  wasAffine = false;
  readonly #scenario: Scenario;
  readonly #module: BackendModule;
  readonly #present = new Map(STAGE_OBJECTS.map((object): [string, RawObject] => [refKey(refOf(object)), object]));
  readonly #services = new Map<string, RawObject>();
  readonly #own = new Map<string, ObjectRef>();

  constructor(scenario: Scenario, module: BackendModule) {
    this.#scenario = scenario;
    this.#module = module;
  }

  /** Those that are there now and are not the stage's. */
  get refs(): readonly ObjectRef[] {
    return [...this.#own.values()];
  }

  put(object: RawObject): void {
    const ref = refOf(object);
    this.#present.set(refKey(ref), object);
    if (!STAGE_KEYS.has(refKey(ref))) this.#own.set(refKey(ref), ref);
    if (ref.kind === "Service") this.#services.set(ref.name, object);
    this.wasAffine ||= fieldAt(object, "spec", "sessionAffinity") === "ClientIP";
  }

  /** Says whether there was such an object. */
  remove(ref: ObjectRef): boolean {
    this.#own.delete(refKey(ref));
    return this.#present.delete(refKey(ref));
  }

  /** The first packet of a probe; a Service that was removed is remembered. @throws {Error} when it names what never was. */
  packet(probe: Probe, family: IPFamily, protocol: Protocol): Packet {
    return packetOf(probe, family, protocol, this.#services);
  }

  /** The words a probe should end in: its own, or the oracle's where the backend's choices are other than the scenarios'. */
  words(probe: Probe, packet: Packet): string {
    return isReference(abilitiesOf(this.#module)) ? probe.sees : this.oracleWords(packet);
  }

  /** What the oracle says of a packet, in the words of a probe. */
  oracleWords(packet: Packet): string {
    return formatWords(seenOfVerdict(verdictOf(this.#world(), packet), packet.source));
  }

  /** Whether the packet's client is remembered by where it went. */
  isAffine(packet: Packet): boolean {
    return this.wasAffine && affinityOf(this.#world(), packet) !== undefined;
  }

  /** Whether two packets are remembered apart, as where a backend remembers clients for each address. */
  areRememberedApart(one: Packet, other: Packet): boolean {
    const [entry, another] = [affinityOf(this.#world(), one), affinityOf(this.#world(), other)];
    return entry !== undefined && another !== undefined && entry.key !== another.key;
  }

  /** Every place and port that some slice names as an endpoint. */
  listeners(): readonly Listener[] {
    return [...this.#present.values()].flatMap(listenersOf);
  }

  #world(): OracleWorld {
    const { settings, hostAddresses } = this.#scenario;
    return {
      objects: [...this.#present.values()],
      nodeName: STAGE_NODE,
      settings: { ...STAGE_SETTINGS, ...settings },
      hostAddresses: {
        IPv4: [...HOST_ADDRESSES.IPv4, ...(hostAddresses?.IPv4 ?? [])],
        IPv6: [...HOST_ADDRESSES.IPv6, ...(hostAddresses?.IPv6 ?? [])],
      },
      nodePortAddressesDefault: this.#module.nodePortAddressesDefault ?? [],
      ...abilitiesOf(this.#module),
    };
  }
}

/** Scenarios hold malformed slices too: what is no endpoint is left out. */
function listenersOf(object: RawObject): readonly Listener[] {
  if (object["kind"] !== "EndpointSlice") return [];
  return listOf(object["endpoints"]).flatMap((endpoint) =>
    listOf(object["ports"]).flatMap((one) => {
      const [port, protocol = "TCP"] = [fieldAt(one, "port"), fieldAt(one, "protocol")];
      const [address] = listOf(fieldAt(endpoint, "addresses"));
      const isWhole = typeof address === "string" && isPort(port) && PROTOCOLS.has(protocol);
      return isWhole ? [{ address, port, protocol: protocol as Protocol }] : [];
    }),
  );
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536;
}

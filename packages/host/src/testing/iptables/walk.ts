import { parseIP } from "@turnout/core";
import type { Packet } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import type { SetLookup } from "../set-lookup.ts";
import type { RecentLists } from "./recent-lists.ts";
import type { Hook } from "./table-names.ts";

/** What a walk needs to know of the host. */
export interface WalkHost {
  isLocal(address: string): boolean;
  /** In [0, 1). */
  random(): number;
  readonly nowMs: number;
  readonly recents: RecentLists;
  readonly sets: SetLookup;
}

/** The virtual server of IPVS that a connection came by. */
export interface VirtualEnd {
  /** `tcp`, … */
  readonly protocol: string;
  readonly addressValue: bigint;
  readonly port: number;
}

/** The first packet of a connection on its way, as rules see and change it. */
export class Walk {
  readonly family: IPFamily;
  readonly protocol: string;
  readonly sourcePort = 40_000;
  readonly host: WalkHost;
  /** The way it took, for people. */
  readonly path: string[] = [];
  /** "" where there is none. */
  inputLink: string;
  outputLink = "";
  mark: number;
  /** Set where IPVS has sent the connection to a real server. */
  virtual: VirtualEnd | undefined;
  /** What conntrack knows of the connection; its state is NEW. */
  isDestinationTranslated = false;
  isSourceTranslated = false;
  #source: Address;
  #destination: Address;
  #port: number;

  constructor({ family, protocol, source, destination, port, link, mark = 0 }: Packet, host: WalkHost) {
    this.family = family;
    this.protocol = protocol.toLowerCase();
    this.#source = addressOf(source);
    this.#destination = addressOf(destination);
    this.#port = port;
    this.inputLink = link;
    this.mark = mark;
    this.host = host;
  }

  get source(): string {
    return this.#source.text;
  }

  get sourceValue(): bigint {
    return this.#source.value;
  }

  get destination(): string {
    return this.#destination.text;
  }

  get destinationValue(): bigint {
    return this.#destination.value;
  }

  get port(): number {
    return this.#port;
  }

  /** IPVS sends it to a real server. */
  balance(address: string, port: number): void {
    this.virtual = { protocol: this.protocol, addressValue: this.destinationValue, port: this.port };
    this.translateDestination(addressOf(address), port);
  }

  /** Whether a hook's translation is decided: nat chains are asked no more. */
  isTranslatedAt(hook: Hook): boolean {
    return hook === "POSTROUTING" || hook === "INPUT" ? this.isSourceTranslated : this.isDestinationTranslated;
  }

  /** Send it elsewhere; undefined: as it is. */
  translateDestination(address: Address | undefined, port: number | undefined): void {
    this.#destination = address ?? this.#destination;
    this.#port = port ?? this.#port;
    this.isDestinationTranslated = true;
  }

  /** Rewrite its source; masquerading takes an address of the host, whose it doesn't matter. */
  translateSource(address: Address | undefined): void {
    this.#source = address ?? this.#source;
    this.isSourceTranslated = true;
  }
}

/** An address that was read. */
export interface Address {
  readonly text: string;
  readonly value: bigint;
}

/** Those of a stage are few, and to read one takes longer than to ask a rule. */
const READ = new Map<string, Address>();

function addressOf(text: string): Address {
  const read = READ.get(text) ?? { text, value: parseIP(text)?.value ?? 0n };
  READ.set(text, read);
  return read;
}

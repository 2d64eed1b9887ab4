import { ProxyError, type DestinationKind, type IPFamily, type Origin, type Protocol, type Target, type TopologyMode } from "@turnout/core";
import type * as wire from "../../gen/turnout/node/v1/node.ts";

/** The error for something a peer said that can't be: garbage, or a newer version's words. */
export function notUnderstood(what: string, said: string | number): ProxyError {
  return new ProxyError("feed_lost", `the other side said ${what} that this version does not understand`, {
    object: JSON.stringify(said),
    hint: "is it a newer version of turnout, or another program?",
  });
}

/** Words of the model and their numbers on the wire, both ways. */
export class Words<W extends string, N extends number> {
  readonly #what: string;
  readonly #numbers: Readonly<Record<W, N>>;
  readonly #words: ReadonlyMap<number, W>;

  constructor(what: string, numbers: Readonly<Record<W, N>>) {
    this.#what = what;
    this.#numbers = numbers;
    this.#words = new Map(Object.entries(numbers).map(([word, number]) => [number as N, word as W]));
  }

  write(word: W): N {
    return this.#numbers[word];
  }

  /** @throws {ProxyError} `feed_lost` for a number without a word. */
  read(number: number): W {
    const word = this.#words.get(number);
    if (word === undefined) throw notUnderstood(this.#what, number);
    return word;
  }
}

/** IP families. */
export const FAMILY_WORDS: Words<IPFamily, wire.Family> = new Words("an IP family", { IPv4: 1, IPv6: 2 });

/** Protocols of rows. */
export const PROTOCOL_WORDS: Words<Protocol, wire.Protocol> = new Words("a protocol", { TCP: 1, UDP: 2, SCTP: 3 });

/** Kinds of destinations. */
export const KIND_WORDS: Words<DestinationKind, wire.DestinationKind> = new Words("a kind of destination", {
  clusterIP: 1,
  externalIP: 2,
  loadBalancerIP: 3,
  nodePort: 4,
});

/** Origins of rules. */
export const ORIGIN_WORDS: Words<Origin, wire.Origin> = new Words("an origin of packets", {
  localPod: 1,
  offCluster: 2,
  thisHost: 3,
  outsideSourceRanges: 4,
  anyone: 5,
});

/** Targets of rules. */
export const TARGET_WORDS: Words<Target, wire.Target> = new Words("a target of a rule", { cluster: 1, local: 2, reject: 3, drop: 4 });

/** Levels of topology. */
export const TOPOLOGY_WORDS: Words<TopologyMode, wire.Topology> = new Words("a level of topology", {
  "": 0,
  PreferSameZone: 1,
  PreferSameNode: 2,
});

/** A packet at one hook, as far as rules of others may look at it. What is undefined is not known. */
export interface HookedPacket {
  readonly family: "IPv4" | "IPv6";
  /** `tcp`, `udp`, `sctp`, `icmp`, `icmpv6`. */
  readonly protocol: string;
  readonly source: string | undefined;
  readonly destination: string;
  readonly sourcePort: number | undefined;
  readonly destinationPort: number | undefined;
  /** "" where there is none, as for what the host sends. */
  readonly inDevice: string | undefined;
  readonly outDevice: string | undefined;
  readonly state: "new" | "established" | "related";
  /** conntrack rewrites its destination. */
  readonly isTranslated: boolean;
  /** Answers to its source leave by the device it came in by. */
  readonly isAnsweredThere: boolean | undefined;
  readonly mark: number;
  /** Bits of the mark that aren't known. */
  readonly unclearMark?: number;
  /** What the connection was opened with, before any translation. */
  readonly original?: { readonly source: string; readonly destination: string; readonly destinationPort: number };
  /** Whether a program takes packets out of a queue; undefined: it can't be told. */
  readonly isQueueServed?: (queue: number) => boolean | undefined;
  /** Whether an address is one of the host's. */
  readonly isLocal: (address: string) => boolean;
  /** Whether an ipset holds these ends of the packet; undefined: not known (yet). */
  readonly isInSet: (set: string, packet: PartlyKnown, ends: readonly ("src" | "dst")[]) => boolean | undefined;
  /** What rules left in `meta priority`; absent: not known. */
  readonly priority?: number;
  /** Random numbers of rules, in [0, 1); absent: they can't be known. */
  readonly random?: () => number;
  /** Its source is rewritten already; absent: it is not, as far as is known. */
  readonly isSourceTranslated?: boolean;
  /** The virtual server of IPVS that its connection came by; absent: not known. */
  readonly virtual?: { readonly protocol: string; readonly address: string; readonly port: number } | "none";
  /** False: no device of this host is a bridge. */
  readonly hasBridges?: false;
  /** Asks or changes a list of clients that were seen recently; absent: they can't be known. */
  readonly recent?: (asked: RecentQuestion) => boolean;
  /** Takes down what a rule writes into a set; false: the set is full. Absent: it is not followed. */
  readonly learn?: (entry: LearnedEntry) => boolean;
}

/** What a rule writes into a set or map because of a packet. */
export interface LearnedEntry {
  readonly set: string;
  /** Parts joined by " . ". */
  readonly key: string;
  /** In a map; "" in a set. */
  readonly value: string;
  /** `renews`: also where it adds nothing, because an entry is there, that gets a new time. */
  readonly does: "adds" | "renews" | "deletes";
  readonly timeoutMs?: number;
}

/** What a rule does with a list of clients: it adds the client, looks for it (in the last seconds; 0: ever), or removes it. */
export interface RecentQuestion {
  readonly action: "set" | "rcheck" | "update" | "remove";
  readonly list: string;
  readonly seconds: number;
  readonly source: string;
}

type Guessed =
  | "isSourceTranslated"
  | "virtual"
  | "hasBridges"
  | "recent"
  | "unclearMark"
  | "original"
  | "isQueueServed"
  | "random"
  | "learn"
  | "priority";

/** A packet at one hook of which some things, or nothing but its state, are known. */
export type PartlyKnown = Pick<HookedPacket, "family" | "state" | "isInSet" | Guessed> & {
  readonly [K in Exclude<keyof HookedPacket, "family" | "state" | "isInSet" | "isLocal" | Guessed>]: HookedPacket[K] | undefined;
} & { readonly isLocal: (address: string) => boolean | undefined };

/** Whether a packet matches; undefined: it can't be told. */
export type Test = (packet: PartlyKnown) => boolean | undefined;

/** What a rule does to packets that match. */
export type Action =
  | { readonly does: "accept" | "drop" | "reject" | "return" | "notrack" | "nothing" }
  /** The rest of the rule is left out, for certain or (`maybe`) perhaps. */
  | { readonly does: "next" | "maybe" }
  /** The destination becomes this; an absent part is not known, or stays. */
  | { readonly does: "translate"; readonly address?: string; readonly port?: number }
  | { readonly does: "jump" | "goto"; readonly chain: string }
  /** Mark becomes (mark & keep) ^ flip; bits of `unclear` are something else then, that can't be known. */
  | { readonly does: "mark"; readonly keep: number; readonly flip: number; readonly unclear?: number }
  /** `meta priority` becomes this. */
  | { readonly does: "priority"; readonly value: number }
  /** The source becomes this address; "": one of this host's. */
  | { readonly does: "source"; readonly address: string }
  /** A program decides, which takes packets out of one of these queues; none: it can't be told which. Bypassed: without a program they pass. */
  | { readonly does: "queue"; readonly queues: readonly number[]; readonly isBypassed: boolean };

/** One rule of somebody else. */
export interface ExternalRule {
  /** As its tool writes it. */
  readonly text: string;
  /** The command that deletes it. */
  readonly deletion: string;
  readonly tests: readonly Test[];
  /** Carried out in order; one that is final ends it. Chosen by the packet in a verdict map; several, or none: it can't be told which. */
  readonly actions: readonly (Action | ((packet: PartlyKnown) => Action | readonly Action[] | undefined))[];
}

/** A chain of somebody else. */
export interface ExternalChain {
  readonly name: string;
  /** Where the kernel calls it in; undefined: only other chains do. */
  readonly hook?: {
    readonly at: string;
    readonly priority: number;
    readonly type: string;
    readonly policy: "accept" | "drop";
    /** Of which devices; absent: it is no hook of devices, or nobody knows. */
    readonly devices?: readonly string[];
  };
  readonly rules: readonly ExternalRule[];
}

/** A table of somebody else, of nftables or of either iptables. */
export interface ExternalTable {
  /** For people: `table inet firewalld`, `iptables (legacy) table filter`. */
  readonly name: string;
  readonly tool: "nft" | "iptables" | "ip6tables" | "iptables-legacy" | "ip6tables-legacy";
  /** E.g. `inet firewalld`, or `filter`. */
  readonly place: string;
  readonly chains: ReadonlyMap<string, ExternalChain>;
}

/** Whether a table is of bridges: what comes from and goes to their ports passes it, on its own hooks. Pure. */
export function isOfBridges({ place }: Pick<ExternalTable, "place">): boolean {
  return place.startsWith("bridge ");
}

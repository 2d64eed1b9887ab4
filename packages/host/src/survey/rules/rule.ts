/** A packet at one hook, as far as rules of others may look at it. What is undefined is not known. */
export interface HookedPacket {
  readonly family: "IPv4" | "IPv6";
  /** `tcp`, `udp`, `sctp`, `icmp`, `icmpv6`. */
  readonly protocol: string;
  readonly source: string;
  readonly destination: string;
  readonly sourcePort: number | undefined;
  readonly destinationPort: number | undefined;
  /** "" where there is none, as for what the host sends. */
  readonly inDevice: string;
  readonly outDevice: string;
  readonly state: "new" | "established" | "related";
  /** conntrack rewrites its destination. */
  readonly isTranslated: boolean;
  readonly mark: number;
  /** Whether an address is one of the host's. */
  readonly isLocal: (address: string) => boolean;
  /** Whether an ipset holds an address; undefined: not known (yet). */
  readonly isInSet: (set: string, address: string, port: number | undefined) => boolean | undefined;
}

/** Whether a packet matches; undefined: it can't be told. */
export type Test = (packet: HookedPacket) => boolean | undefined;

/** What a rule does to packets that match. */
export type Action =
  | { readonly does: "accept" | "drop" | "reject" | "return" | "notrack" | "translate" | "nothing" }
  | { readonly does: "jump" | "goto"; readonly chain: string }
  /** Mark becomes (mark & keep) ^ flip. */
  | { readonly does: "mark"; readonly keep: number; readonly flip: number };

/** One rule of somebody else. */
export interface ForeignRule {
  /** As its tool writes it. */
  readonly text: string;
  readonly tests: readonly Test[];
  /** Carried out in order; one that is final ends it. Chosen by the packet in a verdict map. */
  readonly actions: readonly (Action | ((packet: HookedPacket) => Action | undefined))[];
}

/** A chain of somebody else. */
export interface ForeignChain {
  readonly name: string;
  /** Where the kernel calls it in; undefined: only other chains do. */
  readonly hook?: {
    readonly at: string;
    readonly priority: number;
    readonly type: string;
    readonly policy: "accept" | "drop";
    readonly device?: string;
  };
  readonly rules: readonly ForeignRule[];
}

/** A table of somebody else, of nftables or of either iptables. */
export interface ForeignTable {
  /** For people: `table inet firewalld`, `iptables (legacy) table filter`. */
  readonly name: string;
  readonly tool: "nft" | "iptables" | "ip6tables" | "iptables-legacy" | "ip6tables-legacy";
  /** E.g. `inet firewalld`, or `filter`. */
  readonly place: string;
  readonly chains: ReadonlyMap<string, ForeignChain>;
}

import type { AskedPacket, Fate, HiddenService, IPFamily, KnownObjects, ParsedQuestion, Survey } from "@turnout/core";

/** What helps to explain a packet beyond the rows; a process without a source of API objects has less. */
export interface WhyHelp {
  /** The API objects behind the rows. */
  readonly objects?: KnownObjects;
  /** Services that are left to other proxies. */
  readonly hidden?: (signal: AbortSignal) => Promise<readonly HiddenService[]>;
  /** The addresses on this host's devices, also on those that are down or have no carrier; absent: as the process sees them. */
  readonly addresses?: (family: IPFamily) => Promise<readonly string[]>;
  /** Tells from which address this host sends, where it does, and by which device a client's packets come in; "": this host sends them. */
  readonly locate?: (question: ParsedQuestion, hostAddresses: readonly string[], signal: AbortSignal) => Promise<AskedPacket>;
  /** Looks at the rest of the packet's way over this host. */
  readonly survey?: (
    packet: AskedPacket,
    fate: Fate,
    host: { readonly hostAddresses: readonly string[]; readonly masqueradeBit: number; readonly podCIDRs: readonly string[] },
    signal: AbortSignal,
  ) => Promise<Survey>;
}

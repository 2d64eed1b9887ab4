import type { ExternalChain, HookedPacket } from "@turnout/host/rules";

/** Where the kernel calls a chain in. */
export type Hook = NonNullable<ExternalChain["hook"]>;

/** A hook, and a packet there. */
export interface Passage {
  readonly at: string;
  readonly packet: HookedPacket;
  readonly isAnswer: boolean;
  /** Whose hook it is; absent: the family's own, or that of devices. */
  readonly layer?: "bridge";
  /** Our nat chains have seen it before. */
  readonly isPastOurs: boolean;
  /** It comes in by the loopback device, and conntrack knows it from where it was sent: it is tracked, translated and routed no more. */
  readonly isLooped?: boolean;
  /** Which of the hook's chains it meets, besides those of other devices; absent: all. */
  readonly fits?: (hook: Hook) => boolean;
}

import type { AskedPacket, Fate } from "@turnout/core";

/** A packet, and what is to become of it. */
export interface PathQuestion {
  readonly packet: AskedPacket;
  readonly fate: Fate;
  readonly hostAddresses: readonly string[];
  /** The backend's own rules are in kube-proxy's chains; elsewhere these are another proxy's. */
  readonly hasKubeChains: boolean;
  /** IPVS serves Services: their addresses are this host's own, and what comes in for them is sent on as if this host sent it. */
  readonly servesAtInput: boolean;
  /** The proxy's process answers: Services' addresses are on a device of this host, and it opens connections of its own to endpoints. */
  readonly answersItself: boolean;
  /** What that process is to do for it, where this is about the packet that comes to the process; absent: it is for whomever its address says. */
  readonly processFate?: Fate;
  /** Programs at devices have told conntrack what becomes of a packet before any chain sees it. */
  readonly translatesAtDevices: boolean;
  /** Of the packet mark; undefined: the backend asks for masquerade otherwise. */
  readonly masqueradeBit: number | undefined;
  /** The ranges of this node's pods; absent: nobody knows. */
  readonly podCIDRs?: readonly string[] | undefined;
}

/** IPVS remembers its connections itself, and conntrack follows. */
export function isAtInput({ fate, servesAtInput }: Pick<PathQuestion, "fate" | "servesAtInput">): boolean {
  return fate.is === "forward" && servesAtInput;
}

/** A program at the client's socket puts the endpoint in the address's place. */
export function isBySocket(fate: Fate): boolean {
  return fate.is === "forward" && fate.at === "socket";
}

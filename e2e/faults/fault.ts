import type { CauseId, IPFamily, Protocol } from "@turnout/core";
import type { ServiceManifest } from "@turnout/lab";
import type { ServiceFixture } from "../services.ts";

/** Backends whose packets are forwarded as conntrack has them. */
export const FORWARDED: readonly string[] = ["nft", "iptables", "ebpf"];

/** A question to ask about a packet, by names of places. */
export interface FaultQuestion {
  /** Name of a place, an address, or `host`. */
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly protocol?: Protocol;
  /** The device it comes in by, where that is known. */
  readonly device?: string;
  /** The command is asked to probe endpoints. */
  readonly isProbed?: true;
  /** The command is asked with a source and these flags, and reads everything by itself. */
  readonly standaloneWith?: readonly string[];
}

/** Groups of faults, in the order in which they are run. */
export const KINDS = ["objects", "host", "rules", "backends", "kernel"] as const;

/** What a fault is in: API objects, the host, rules of other programs, what one backend depends on, the proxy's own objects. */
export type FaultKind = (typeof KINDS)[number];

/** Something that is broken on purpose, and what has to be named as the culprit: a case of `cases/*.yaml`. */
export interface Fault {
  readonly kind: FaultKind;
  readonly name: string;
  /** Any of these names it right; none: nothing may be blamed. */
  readonly culprits: readonly CauseId[];
  readonly ask: FaultQuestion;
  /** Shell commands on node1 that break it, and that repair it again. */
  readonly inject?: string;
  readonly fix?: string;
  /** Where else than on node1. */
  readonly at?: string;
  /** Backends that can have it; default all. */
  readonly backends?: readonly string[];
  /** A text that the answer has to name, e.g. the object. */
  readonly names?: string;
  /** A text that one of the steps has to have. */
  readonly step?: string;
  /** A text that one of the notes has to have. */
  readonly note?: string;
  /** A text that one of the rules has to have which the answer says can't be judged. */
  readonly unjudged?: string;
  /**
   * What real connections have to do, TCP: `arrive` while it is as injected, be `lost` then, or be `repaired`, that is lost first, and arrive after the answer's
   * commands were typed, or where it has none those of what may be done in place of that, with nothing left to be blamed. `repaired instead`: by the latter in any case.
   */
  readonly connections?: "arrive" | "lost" | "repaired" | "repaired instead";
  /** Flags that the proxy has besides, meanwhile. */
  readonly extraFlags?: readonly string[];
  /** Of the kernel's own objects: the proxy is stopped (SIGSTOP) meanwhile, and not ended. */
  readonly isStopped?: true;
  /** A command that the answer has to give, or the beginning of one. */
  readonly command?: string;
  /** Of `objects`: fields of its own Service, and its endpoints; default a pod on each node. */
  readonly service?: Partial<ServiceManifest>;
  readonly endpoints?: ServiceFixture["endpoints"];
  /** Families of its slices; default both. */
  readonly families?: readonly IPFamily[];
  /** What is merged into the Service as written, and into its slices, the last one into all that follow. */
  readonly object?: object;
  readonly slices?: readonly object[];
  /** Addresses of its own Service. */
  readonly own: readonly string[];
  /** There is none. */
  readonly hasNoService?: true;
}

/** A packet that arrives. */
export interface HealthyCase {
  readonly name: string;
  readonly ask: FaultQuestion;
}

/** What may be around packets that arrive, as shell commands on node1 that put it there and take it away; nothing of it is to be blamed. */
export interface HealthyVariant {
  readonly name: string;
  readonly inject: string;
  readonly fix: string;
  /** Backends that can have it; default all. */
  readonly backends?: readonly string[];
}

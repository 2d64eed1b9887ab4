import type { Capability, IPFamily, NodeSettings, ObjectKind, Protocol } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";

/**
 * A conformance scenario: a history of object changes with packets sent after every step.
 *
 * Shape: plain data. It plays on the stage (`stage.ts`), in both families and for all protocols unless it says otherwise: its objects are dual
 * stack and serve TCP, UDP and SCTP under one port number.
 */
export interface Scenario {
  /** A sentence, unique. */
  readonly name: string;
  /** Rules of docs/rules.md it shows, e.g. `R-22`. */
  readonly rules: readonly string[];
  /** Entries of the list of subtleties in the specification it guards. */
  readonly subtleties?: readonly number[];
  /** Without one of these a backend is not asked. */
  readonly needs?: readonly Capability[];
  /** Changes to the stage's settings. */
  readonly settings?: Partial<NodeSettings>;
  /** Addresses node1 has in this scenario besides those of the stage. */
  readonly hostAddresses?: Readonly<Record<IPFamily, readonly string[]>>;
  /** Why it can't be played with real packets in the laboratory; absent: it can. */
  readonly fakeOnly?: string;
  readonly families?: readonly IPFamily[];
  readonly protocols?: readonly Protocol[];
  readonly steps: readonly Step[];
}

/** One step of a scenario; its parts happen in the order of the fields. */
export interface Step {
  /** What happens, in a few words. */
  readonly say: string;
  /** Let time pass first. */
  readonly waitSeconds?: number;
  /** The proxy's process ends and a new one starts: before the changes of this step, or with them happening in between, where nobody sees them. */
  readonly restart?: true | "amid changes";
  readonly put?: readonly RawObject[];
  readonly remove?: readonly ObjectRef[];
  /** Sent once everything before is in force. */
  readonly probes?: readonly Probe[];
  /** What must have become of kept UDP flows, looked at before the probes are sent. */
  readonly flows?: readonly FlowExpectation[];
}

/** Names an API object; namespace "" for kinds that have none. */
export interface ObjectRef {
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Who asks for what, and what must come of it.
 *
 * Shape: `sees` is in words that are the same for every family and protocol, and for real packets: names of all servers that may answer, then
 * `saw` and whom they see (`pod-1-1 pod-2-1 saw client1`), or `refused`, `dropped`, or `untouched` (the proxy has no part in it). A hairpin
 * connection is told apart by the name: `pod-1-1 saw node1, pod-2-1 saw pod-1-1`.
 */
export interface Probe {
  /** Name of a place. */
  readonly from: string;
  /** Source address instead of the place's own: in the form of {@link Probe.to}, e.g. `web loadBalancerIP`. */
  readonly as?: string | Readonly<Record<IPFamily, string>>;
  /** `web clusterIP`, `web externalIP`, `web loadBalancerIP`, `web nodePort@node1` (a Service's name and way; its first of the family), or addresses. */
  readonly to: string | Readonly<Record<IPFamily, string>>;
  /** Default: the port of the Service's first port (its node port for that way). */
  readonly port?: number;
  readonly sees: string;
  /**
   * A connection that stays: what it leaves behind (affinity, a UDP flow) is there for later steps. The name is for {@link Probe.like}
   * and {@link FlowExpectation}; a probe that is not kept leaves nothing behind.
   */
  readonly keep?: string;
  /** Every server gets the same share (rule R-68). */
  readonly isEven?: true;
  /** It bears every mark bit but the one that the settings give to the proxy (rule R-69). */
  readonly isMarked?: true;
  /** Like the kept connection of this name: a packet of an affine client must go where that one went (`same`) or may go anywhere in `sees` (`free`). */
  readonly like?: { readonly kept: string; readonly goes: "same" | "free" };
}

/** What must have become of a kept UDP flow: still remembered, or forgotten. */
export interface FlowExpectation {
  readonly kept: string;
  readonly is: "remembered" | "forgotten";
}

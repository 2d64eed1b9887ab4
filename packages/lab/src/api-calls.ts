import type { ObjectKind } from "@turnout/core";
import type { ApiObject } from "./apiserver/api-object.ts";
import type { Misbehaviour } from "./apiserver/faults.ts";

/** Where the emulator listens: an address of the fabric. */
export interface ApiStart {
  readonly host: string;
  readonly port: number;
}

/** What can be asked of an API server emulator that runs in a process of its own. */
export interface ApiCalls {
  /** Create or replace, in order. */
  apply(objects: readonly unknown[]): Promise<void>;
  /** Delete; false when there was none. `namespace` "" for cluster-scoped kinds. */
  delete(what: { readonly kind: ObjectKind; readonly namespace: string; readonly name: string }): Promise<boolean>;
  objects(kind: ObjectKind): Promise<readonly ApiObject[]>;
  /** Misbehave until {@link ApiCalls.behave}. */
  misbehave(what: Misbehaviour): Promise<void>;
  behave(): Promise<void>;
  /** Cut all open watches; how many there were. */
  dropWatches(): Promise<number>;
  /** Forget the history: resuming clients get 410. */
  compact(): Promise<void>;
  watchCount(): Promise<number>;
  /** Refuse connections and cut the open ones. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  kubeconfig(): Promise<string>;
}

/** Names of the calls, for the two ends to wire themselves up. */
export const API_CALLS: readonly (keyof ApiCalls)[] = [
  "apply",
  "delete",
  "objects",
  "misbehave",
  "behave",
  "dropWatches",
  "compact",
  "watchCount",
  "pause",
  "resume",
  "kubeconfig",
];

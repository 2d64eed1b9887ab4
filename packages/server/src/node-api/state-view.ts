import type { Delivery } from "@turnout/client/protocol";
import type { NodeSettings } from "@turnout/core";

/** What a watcher asks for: the same request gets the same view. */
export interface NodeStateRequest {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Canonical, "" for none. */
  readonly bindAddress: string;
}

/** What a watcher holds. */
export interface Cursor {
  /** "" for nothing. */
  readonly instance: string;
  readonly revision: number;
}

/** One node's state in one family, for however many watchers; a watcher that does not ask costs nothing here. */
export interface StateView {
  /**
   * Wait for what a watcher with this cursor does not have; everything when its history is not this one. With `isApart`, the rows
   * that many nodes share may come in {@link Delivery.shared}.
   * @throws {ProxyError} `canceled` when `signal` aborts or the view is closed.
   */
  next(cursor: Cursor, signal: AbortSignal, isApart?: boolean): Promise<Delivery>;
  /** Stop; whoever waits is canceled. */
  close(): void;
}

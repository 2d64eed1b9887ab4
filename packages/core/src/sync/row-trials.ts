import { ProxyError } from "../model/errors.ts";
import type { AppliedCount } from "./host-link.ts";

/** What trying rows needs to do. */
export interface TrialActions {
  /** Want a row as it should be. */
  release(row: string): void;
  /** Leave a row as the host has it. */
  suspend(row: string): void;
  /** Apply what is wanted. @throws what the host refuses it with. */
  apply(): Promise<AppliedCount>;
  /** Hear of a refusal; a throw ends the trials. */
  onRefusal(error: unknown): void;
}

/** How the trials went. */
export interface TrialResult extends AppliedCount {
  /** Rows that stay suspended, and what the host said. */
  readonly refused: ReadonlyMap<string, ProxyError>;
}

/**
 * Find the rows that a host refuses: first as many as possible at once, then in halves.
 *
 * Shape: all `rows` are suspended on entry; afterwards all but the refused ones are in force. One bad row among n costs about
 * 2 log2(n) applications.
 */
export async function tryRows(rows: readonly string[], actions: TrialActions): Promise<TrialResult> {
  const refused = new Map<string, ProxyError>();
  let put = 0;
  let removed = 0;
  const waiting: (readonly string[])[] = rows.length === 0 ? [] : [rows];
  for (let some = waiting.pop(); some !== undefined; some = waiting.pop()) {
    for (const row of some) actions.release(row);
    try {
      const count = await actions.apply();
      put += count.put;
      removed += count.removed;
    } catch (error) {
      actions.onRefusal(error);
      for (const row of some) actions.suspend(row);
      const middle = Math.ceil(some.length / 2);
      if (some.length === 1) refused.set(some[0] as string, ProxyError.from(error, "tool_failed", "the host refused it"));
      else waiting.push(some.slice(middle), some.slice(0, middle));
    }
  }
  return { put, removed, refused };
}

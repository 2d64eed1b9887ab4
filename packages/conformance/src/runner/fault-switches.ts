import type { Fault } from "./fake-host.ts";

/**
 * The two ways in which a {@link FakeHost} fails on command: one change that fails, and addresses that it refuses.
 *
 * Shape: a fake host hands `setFault` and `refuse` on to it, and asks {@link FaultSwitches.next} before each change that the backend makes;
 * the tool in memory plays what comes of it. Tools that one host has together share one of these.
 */
export class FaultSwitches {
  #fault: Fault | undefined;
  #refused: readonly string[] = [];

  /** See {@link FakeHost.setFault}. */
  setFault(fault: Fault | undefined): void {
    this.#fault = fault;
  }

  /** See {@link FakeHost.refuse}. */
  refuse(addresses: readonly string[]): void {
    this.#refused = addresses;
  }

  /** Tell whether a change names an address that is refused; `change` is its text, or the addresses it names. */
  isRefused(change: string | readonly string[]): boolean {
    return this.#refused.some((address) => change.includes(address));
  }

  /**
   * Say how the change that comes now fails; undefined: it succeeds.
   *
   * Edges: what is refused fails `before`, and is not counted; a fault is over once it has come.
   */
  next(change: string | readonly string[]): Fault["when"] | undefined {
    if (this.isRefused(change)) return "before";
    const fault = this.#fault;
    if (fault === undefined) return undefined;
    this.#fault = fault.afterChanges > 0 ? { ...fault, afterChanges: fault.afterChanges - 1 } : undefined;
    return fault.afterChanges > 0 ? undefined : fault.when;
  }
}

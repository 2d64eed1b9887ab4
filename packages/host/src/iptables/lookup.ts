import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { chooseIptables } from "./tools.ts";
import type { IptablesChoice, IptablesVariant } from "./tools.ts";

/**
 * Which programs of iptables this host uses, looked up with the first question and kept.
 *
 * Shape: one for both families, because {@link chooseIptables} looks at both, and starts a dozen programs for that.
 */
export class IptablesLookup {
  readonly wanted: "auto" | IptablesVariant;
  readonly #exec: Exec;
  #found: IptablesChoice | undefined;
  #looking: Promise<IptablesChoice> | undefined;

  constructor(exec: Exec, wanted: "auto" | IptablesVariant) {
    this.#exec = exec;
    this.wanted = wanted;
  }

  /** What was found; undefined: nobody has asked yet. */
  get found(): IptablesChoice | undefined {
    return this.#found;
  }

  /** Which programs are used. Who asks while they are looked up waits with the others. @throws {ProxyError} as {@link chooseIptables}. */
  async choice(signal: AbortSignal): Promise<IptablesChoice> {
    if (this.#found !== undefined) return this.#found;
    const looking = (this.#looking ??= this.#look(signal));
    try {
      return await looking;
    } catch (error) {
      // It was canceled by whoever asked first.
      if (ProxyError.is(error, "canceled") && !signal.aborted) return await this.choice(signal);
      throw error;
    }
  }

  async #look(signal: AbortSignal): Promise<IptablesChoice> {
    try {
      return (this.#found = await chooseIptables(this.wanted, this.#exec, signal));
    } finally {
      this.#looking = undefined;
    }
  }
}

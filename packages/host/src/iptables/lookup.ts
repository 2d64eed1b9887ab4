import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { chooseIptables } from "./tools.ts";
import type { InstalledIptables, IptablesChoice, IptablesVariant } from "./tools.ts";

/** What may be wanted of {@link chooseIptables}. */
export type WantedIptables = "auto" | IptablesVariant;

/** A world that may remember which programs of iptables its host uses. */
export interface IptablesMemory {
  readonly exec: Exec;
  /** Gives the same lookup to a probe and to the dataplane that is opened after it. Absent: nothing is remembered, and each looks. */
  readonly rememberedLookup?: (wanted: WantedIptables) => IptablesLookup;
}

/** Make the memory of a process for {@link IptablesMemory}: of what was wanted last. */
export function rememberLookup(exec: Exec): (wanted: WantedIptables) => IptablesLookup {
  let last: IptablesLookup | undefined;
  return (wanted) => (last?.wanted === wanted ? last : (last = new IptablesLookup(exec, wanted)));
}

/** The lookup that a world remembers, or a new one. */
export function lookupIn({ exec, rememberedLookup }: IptablesMemory, wanted: WantedIptables): IptablesLookup {
  return rememberedLookup?.(wanted) ?? new IptablesLookup(exec, wanted);
}

/**
 * Which programs of iptables this host uses, looked up with the first question and kept.
 *
 * Shape: one for both families, because {@link chooseIptables} looks at both, and starts a dozen programs for that.
 */
export class IptablesLookup {
  readonly wanted: WantedIptables;
  readonly #exec: Exec;
  #found: IptablesChoice | undefined;
  #looking: Promise<IptablesChoice> | undefined;

  constructor(exec: Exec, wanted: WantedIptables) {
    this.#exec = exec;
    this.wanted = wanted;
  }

  /** What was found; undefined: nobody has asked yet. */
  get found(): IptablesChoice | undefined {
    return this.#found;
  }

  /**
   * Which programs are used. Who asks while they are looked up waits with the others.
   * @param installed what was found just before, if anything was
   * @throws {ProxyError} as {@link chooseIptables}.
   */
  async choice(signal: AbortSignal, installed?: InstalledIptables): Promise<IptablesChoice> {
    if (this.#found !== undefined) return this.#found;
    const looking = (this.#looking ??= this.#look(signal, installed));
    try {
      return await looking;
    } catch (error) {
      // It was canceled by whoever asked first.
      if (ProxyError.is(error, "canceled") && !signal.aborted) return await this.choice(signal);
      throw error;
    }
  }

  async #look(signal: AbortSignal, installed: InstalledIptables | undefined): Promise<IptablesChoice> {
    try {
      return (this.#found = await chooseIptables(this.wanted, this.#exec, signal, installed));
    } finally {
      this.#looking = undefined;
    }
  }
}

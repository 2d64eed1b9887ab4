import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Leftover } from "@turnout/core/backend";
import type { EchoCount, LinuxWorld, OwnCommits } from "@turnout/host";
import { findIptables, iptablesName, IptablesTool, unseenVariants } from "@turnout/host/iptables";
import type { IptablesProgram, IptablesVariant } from "@turnout/host/iptables";
import { isMarked, withoutOtherModes } from "@turnout/host/iptables/text";
import type { ModeWords } from "@turnout/host/iptables/text";
import { Applier } from "./apply.ts";
import type { IptablesObject } from "./objects.ts";
import { OF_IPVS_MODE, parseSaved, sendsServices } from "./observe.ts";
import { planDelta } from "./plan.ts";

/** Under kube-proxy's ipvs mode, and what is like it, chains of the same names look into sets. */
export const MODE: ModeWords = {
  looksIntoSets: false,
  isOwnJump: (table, rule) => table === "filter" && !rule.endsWith("-j KUBE-FORWARD") && !rule.includes(OF_IPVS_MODE),
};

/** One family's hands on the host. */
export interface LeaverParts {
  readonly family: IPFamily;
  readonly world: LinuxWorld;
  readonly own: OwnCommits;
  readonly echoes: EchoCount;
}

interface Found {
  readonly objects: readonly IptablesObject[];
  readonly by: "turnout" | "kube-proxy";
}

/** Takes one family's chains off the host, variant by variant: what one of them fails with is no reason to leave the other. */
export class Leaver {
  readonly #parts: LeaverParts;

  constructor(parts: LeaverParts) {
    this.#parts = parts;
  }

  /**
   * Remove what is ours, in whichever variant it is. What a kube-proxy has written since is its own, and stays: it may be running.
   * @throws {ProxyError} the first reason why something is left, or why nobody can tell.
   */
  async removeAll(signal: AbortSignal): Promise<void> {
    const { family, world } = this.#parts;
    const { programs, failures } = await this.#look(signal);
    for (const program of programs) {
      await noting(failures, async () => {
        const { objects, by } = await this.#found(program, signal);
        if (by === "turnout" || !sendsServices(objects)) await this.#remove(objects, program, signal);
        else {
          const place = { family, variant: program.variant };
          world.log.info("KUBE-* chains are kube-proxy's and stay", { ...place, hint: "kube-proxy --cleanup removes them" });
        }
      });
    }
    for (const error of failures.slice(1)) world.log.warn("cleanup failed", { family, error });
    if (failures[0] !== undefined) throw failures[0];
  }

  /**
   * Find the chains that are left in each variant.
   *
   * Edges: in the variant that is `inUse` all was adopted. Beside it only what Services go by counts: kubelet may keep its own chains there.
   * @throws {ProxyError} `tool_missing` without any iptables, where the kernel has nothing either.
   */
  async leftovers(inUse: IptablesVariant | undefined, signal: AbortSignal): Promise<readonly Leftover[]> {
    const { family } = this.#parts;
    const { programs, failures } = await this.#look(signal);
    const [first] = failures;
    if (first?.code === "tool_missing") throw first;
    const found: Leftover[] = [];
    for (const program of programs.filter(({ variant }) => variant !== inUse)) {
      await noting(failures, async () => {
        const { objects, by } = await this.#found(program, signal);
        const chains = objects.filter(({ kind }) => kind === "chain" || kind === "shared").length;
        const isLive = sendsServices(objects);
        if (chains === 0 || (inUse !== undefined && !isLive)) return;
        const what = `${chains} KUBE-* chains of ${iptablesName(family, program, "")} (${program.variant})`;
        const remove = (stop: AbortSignal): Promise<void> => this.#remove(objects, program, stop);
        found.push({ what, by, isLive, options: { variant: program.variant }, remove });
      });
    }
    return [...found, ...failures.map(unseenChains)];
  }

  /** The programs that are here, and what they can't show. */
  async #look(signal: AbortSignal): Promise<{ readonly programs: readonly IptablesProgram[]; readonly failures: ProxyError[] }> {
    const { family, world } = this.#parts;
    const { programs } = await findIptables(world.exec, signal);
    const failures: ProxyError[] = [];
    await noting(failures, async () => void failures.push(...(await unseenVariants(world.netlink, family, programs))));
    return { programs, failures };
  }

  /** The chains of one variant, and who wrote them last. */
  async #found(program: IptablesProgram, signal: AbortSignal): Promise<Found> {
    const { family } = this.#parts;
    const { filter = "", nat = "", mangle = "" } = await this.#toolOf(program).saveExisting(signal);
    const objects = withoutOtherModes([...parseSaved({ filter, nat, mangle }, family, false).values()], MODE);
    return { objects, by: isMarked(nat) ? "turnout" : "kube-proxy" };
  }

  async #remove(remove: readonly IptablesObject[], program: IptablesProgram, signal: AbortSignal): Promise<void> {
    if (remove.length === 0) return;
    const { own, echoes, world } = this.#parts;
    const plan = planDelta({ put: [], remove, lingering: [], nowMs: world.clock.nowMs() });
    const tool = this.#toolOf(program);
    const applier = new Applier(tool, { own, echoes }, world);
    const { lingering = [] } = await applier.apply(plan, signal);
    if (lingering.length > 0) throw await tool.leftChains(lingering, signal);
  }

  #toolOf(program: IptablesProgram): IptablesTool {
    return new IptablesTool(this.#parts.world, this.#parts.family, program);
  }
}

/** Do one of several things; what it fails with is noted, and the others are done all the same. */
async function noting(failures: ProxyError[], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!ProxyError.is(error) || error.code === "canceled") throw error;
    failures.push(error);
  }
}

function unseenChains(unseen: ProxyError): Leftover {
  return { what: "KUBE-* chains of iptables", isLive: false, unseen, remove: () => Promise.reject(unseen) };
}

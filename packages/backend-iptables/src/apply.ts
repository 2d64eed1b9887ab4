import { objectId, ProxyError } from "@turnout/core/backend";
import type { LinuxWorld } from "@turnout/host";
import type { Exec, Outcome, Plan } from "@turnout/core/backend";
import { SectionRestore } from "@turnout/host/iptables";
import type { CommitCounts, IptablesTool } from "@turnout/host/iptables";
import { setParameter } from "@turnout/host";
import type { ChainObject, Section } from "@turnout/host/iptables/text";
import type { IptablesObject } from "./objects.ts";
import { countRules } from "./observe.ts";
import type { Step } from "./plan.ts";

/** A chain that somebody else jumps to can't be deleted; it is tried again after this long. */
const LINGER_MS = 60_000;

/** Rules per table. */
type RuleCounts = Record<"filter" | "nat", number>;

/** What dashboards of kube-proxy ask for. */
export interface ApplyMetrics {
  readonly failures: number;
  /** Failures of a change that was planned without having looked at the host first. */
  readonly partialFailures: number;
  /** Rules in force. */
  readonly total: Readonly<RuleCounts>;
  /** Rules written by the last change. */
  readonly last: Readonly<RuleCounts>;
}

/**
 * Carries plans out, and counts.
 *
 * Edges: a chain that can't be deleted, because somebody else jumps to it, is left empty and tried again a minute later; it never fails a
 * sync. A kernel parameter that can't be set fails by itself.
 */
export class Applier {
  readonly #restore: SectionRestore;
  readonly #exec: Exec;
  readonly #netlink: Pick<LinuxWorld["netlink"], "createCounter">;
  #isAfterLook = false;
  #failures = 0;
  #partialFailures = 0;
  #total: RuleCounts = { filter: 0, nat: 0 };
  #last: RuleCounts = { filter: 0, nat: 0 };

  constructor(tool: IptablesTool, commits: CommitCounts, { exec, log, netlink }: Pick<LinuxWorld, "exec" | "log" | "netlink">) {
    this.#netlink = netlink;
    this.#restore = new SectionRestore(tool, log, commits);
    this.#exec = exec;
  }

  get numbers(): ApplyMetrics {
    return { failures: this.#failures, partialFailures: this.#partialFailures, total: this.#total, last: this.#last };
  }

  /** The host was read anew. */
  looked(objects: Iterable<IptablesObject>): void {
    this.#isAfterLook = true;
    this.#total = countRules(objects);
  }

  /** Carry out one plan. @throws {ProxyError} when a section failed; earlier ones are in force. */
  async apply({ steps }: Plan<Step>, signal: AbortSignal): Promise<Outcome<IptablesObject>> {
    const failed = new Map<string, ProxyError>();
    const idle: ChainObject[] = [];
    this.#last = { filter: 0, nat: 0 };
    for (const step of steps) {
      if (step.do === "restore") idle.push(...(await this.#restoreAll(step.sections, signal)));
      else if (step.do === "delete") idle.push(...(await this.#restore.deleteChains(step.chains, signal)));
      else if (step.do === "count") await this.#netlink.createCounter(step.object.key);
      else {
        const error = await this.#set(step, signal);
        if (error !== undefined) failed.set(objectId(step.object), error);
      }
    }
    this.#isAfterLook = false;
    return {
      ...(failed.size === 0 ? {} : { failed }),
      ...(idle.length === 0 ? {} : { lingering: idle.map((object) => ({ object, afterMs: LINGER_MS })) }),
    };
  }

  /** Resolves to chains that are empty now and can't be deleted yet. */
  async #restoreAll(sections: readonly Section[], signal: AbortSignal): Promise<readonly ChainObject[]> {
    const idle = await this.#restore.restore(sections, signal).catch((error: unknown) => this.#failedWith(error));
    for (const { table, written, growth } of sections) {
      if (table === "mangle") continue;
      this.#last[table] += written;
      this.#total = { ...this.#total, [table]: this.#total[table] + growth };
    }
    return idle;
  }

  #failedWith(error: unknown): never {
    this.#failures++;
    if (!this.#isAfterLook) this.#partialFailures++;
    throw error;
  }

  async #set({ object }: Extract<Step, { do: "set" }>, signal: AbortSignal): Promise<ProxyError | undefined> {
    try {
      await setParameter(this.#exec, object.key, object.value, signal);
      return undefined;
    } catch (error) {
      return ProxyError.from(error, "tool_failed", "a kernel parameter can't be set", { object: object.key });
    }
  }
}

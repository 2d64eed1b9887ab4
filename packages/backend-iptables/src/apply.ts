import { tryInHalves } from "@turnout/core";
import { objectId, ProxyError } from "@turnout/core/backend";
import type { Exec, Log, Outcome, Plan, World } from "@turnout/core/backend";
import { complainedLine } from "@turnout/host/iptables";
import { setParameter } from "@turnout/host";
import type { EchoCount, OwnCommits } from "@turnout/host";
import { cutSections, deletionsOf, restoreInput } from "@turnout/host/iptables/text";
import type { ChainObject, Section } from "@turnout/host/iptables/text";
import type { IptablesTool } from "@turnout/host/iptables";
import type { IptablesObject } from "./objects.ts";
import { countRules } from "./observe.ts";
import type { Step } from "./plan.ts";

/** A chain that somebody else jumps to can't be deleted; it is tried again after this long. */
const LINGER_MS = 60_000;

/** Rules per table. */
type RuleCounts = Record<"filter" | "nat", number>;

/** What dashboards of kube-proxy ask for. */
export interface ApplyNumbers {
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
  readonly #tool: IptablesTool;
  readonly #own: OwnCommits;
  readonly #echoes: EchoCount;
  readonly #exec: Exec;
  readonly #log: Log;
  #isAfterLook = false;
  #failures = 0;
  #partialFailures = 0;
  #total: RuleCounts = { filter: 0, nat: 0 };
  #last: RuleCounts = { filter: 0, nat: 0 };

  constructor(
    tool: IptablesTool,
    commits: { readonly own: OwnCommits; readonly echoes: EchoCount },
    { exec, log }: Pick<World, "exec" | "log">,
  ) {
    this.#tool = tool;
    this.#own = commits.own;
    this.#echoes = commits.echoes;
    this.#exec = exec;
    this.#log = log;
  }

  get numbers(): ApplyNumbers {
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
      else if (step.do === "delete") idle.push(...(await this.#deleteChains(step.chains, signal)));
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
    const idle = await this.#restore(await this.#cut(sections, signal), signal);
    for (const { table, written, growth } of sections) {
      if (table === "mangle") continue;
      this.#last[table] += written;
      this.#total = { ...this.#total, [table]: this.#total[table] + growth };
    }
    return idle;
  }

  /** The legacy variant replaces the whole table at every COMMIT: one is cheapest. */
  async #cut(sections: readonly Section[], signal: AbortSignal): Promise<readonly Section[]> {
    return (await this.#tool.choice(signal)).variant === "nft" ? cutSections(sections) : sections;
  }

  async #restore(sections: readonly Section[], signal: AbortSignal): Promise<readonly ChainObject[]> {
    try {
      await this.#commit(sections, true, signal);
      return [];
    } catch (cause) {
      const rest = signal.aborted ? undefined : sectionsAfterDeletion(cause, sections);
      if (rest === undefined) this.#failedWith(cause);
      await this.#commit(rest, false, signal).catch((error: unknown) => this.#failedWith(error));
      return await this.#deleteChains(
        rest.flatMap(({ dead }) => dead),
        signal,
      );
    }
  }

  async #commit(sections: readonly Section[], withDeletions: boolean, signal: AbortSignal): Promise<void> {
    // Each section is a commit of its own. Of a call that failed some may be in force: they are taken for somebody else's, and looked at.
    this.#echoes.expect(sections.length);
    try {
      await this.#own.during(sections.length, () => this.#tool.restore(restoreInput(sections, withDeletions), signal));
    } catch (error) {
      this.#echoes.expect(-sections.length);
      throw error;
    }
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

  /**
   * Delete idle chains that are empty, so in any order: all at once, and when one of them is refused in halves, until those are left that
   * somebody else still uses, to which it resolves. They must not hold up the rest, and ten thousand others must not cost a call each.
   */
  async #deleteChains(chains: readonly ChainObject[], signal: AbortSignal): Promise<readonly ChainObject[]> {
    let sections: readonly Section[] = [];
    const refused = await tryInHalves(chains, {
      attempt: async (some) => {
        sections = await this.#cut(deletionsOf(some), signal);
        await this.#commit(sections, true, signal);
      },
      onFailure(cause) {
        if (signal.aborted) throw cause;
        return sectionsAfterDeletion(cause, sections) !== undefined;
      },
    });
    const idle = [...refused.keys()];
    for (const cause of new Set(refused.values())) {
      const error = ProxyError.from(cause, "tool_failed", "iptables failed");
      this.#log.debug("idle chains can't be deleted yet", { chains: idle.map(({ key }) => key).join(", "), error: error.message });
    }
    return idle;
  }
}

/**
 * The sections that are not in force because a chain couldn't be deleted that somebody else still jumps to; undefined when the change failed
 * for another reason.
 */
function sectionsAfterDeletion(cause: unknown, sections: readonly Section[]): readonly Section[] | undefined {
  if (!ProxyError.is(cause)) return undefined;
  const number = complainedLine(cause.object ?? "");
  if (number === undefined) return undefined;
  let end = 0;
  for (const [index, section] of sections.entries()) {
    const lines = restoreInput([section]).split("\n").slice(0, -1);
    const line = lines[number - end - 1];
    if (line?.startsWith("-X ") === true) return sections.slice(index);
    end += lines.length;
    if (number <= end) return undefined;
  }
  return undefined;
}

import { ProxyError, tryInHalves } from "@turnout/core";
import type { Log } from "@turnout/core";
import type { EchoCount, OwnCommits } from "../watch/own-commits.ts";
import type { FingerprintWatch } from "../watch/fingerprint-watch.ts";
import { complainedLine } from "./errors.ts";
import { cutSections } from "./text/cut-sections.ts";
import type { ChainObject } from "./text/objects.ts";
import { deletionsOf, restoreInput } from "./text/section.ts";
import type { Section } from "./text/section.ts";
import type { IptablesTool } from "./tool.ts";

/** Who counts the commits that are our own. */
export interface CommitCounts {
  readonly own: OwnCommits;
  readonly echoes: EchoCount;
  /** Watches what the legacy variant has; absent: nobody does. */
  readonly fingerprints?: Pick<FingerprintWatch, "during">;
}

/**
 * Brings sections into force with the tool of the variant in use.
 *
 * Edges: a chain that can't be deleted, because somebody else's rule jumps to it, is left empty; it never fails a change.
 */
export class SectionRestore {
  readonly #tool: Pick<IptablesTool, "choice" | "restore">;
  readonly #commits: CommitCounts | undefined;
  readonly #log: Log;

  /** @param commits for who watches commits; the legacy variant has none */
  constructor(tool: Pick<IptablesTool, "choice" | "restore">, log: Log, commits?: CommitCounts) {
    this.#tool = tool;
    this.#log = log;
    this.#commits = commits;
  }

  /**
   * Bring sections into force, in their order. Resolves to chains that are empty now and can't be deleted yet.
   * @throws {ProxyError} when a section failed; earlier ones are in force.
   */
  async restore(sections: readonly Section[], signal: AbortSignal): Promise<readonly ChainObject[]> {
    const cut = await this.#cut(sections, signal);
    try {
      await this.#commit(cut, true, signal);
      return [];
    } catch (cause) {
      const rest = signal.aborted ? undefined : sectionsAfterDeletion(cause, cut);
      if (rest === undefined) throw cause;
      await this.#commit(rest, false, signal);
      return await this.deleteChains(
        rest.flatMap(({ dead }) => dead),
        signal,
      );
    }
  }

  /**
   * Delete idle chains that are empty, so in any order: all at once, and when one of them is refused in halves, until those are left that
   * somebody else still uses, to which it resolves. They must not hold up the rest, and ten thousand others must not cost a call each.
   * @throws {ProxyError} what the tool failed with for another reason.
   */
  async deleteChains(chains: readonly ChainObject[], signal: AbortSignal): Promise<readonly ChainObject[]> {
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

  /** The legacy variant replaces the whole table at every COMMIT: one is cheapest. */
  async #cut(sections: readonly Section[], signal: AbortSignal): Promise<readonly Section[]> {
    return (await this.#tool.choice(signal)).variant === "nft" ? cutSections(sections) : sections;
  }

  async #commit(sections: readonly Section[], withDeletions: boolean, signal: AbortSignal): Promise<void> {
    const written = (): Promise<void> => this.#tool.restore(restoreInput(sections, withDeletions), signal);
    const fingerprints = this.#commits?.fingerprints;
    const restore = fingerprints === undefined ? written : (): Promise<void> => fingerprints.during(written);
    if (this.#commits === undefined) return await restore();
    const { own, echoes } = this.#commits;
    // Each section is a commit of its own. Of a call that failed some may be in force: they are taken for somebody else's, and looked at.
    echoes.expect(sections.length);
    try {
      await own.during(sections.length, restore);
    } catch (error) {
      echoes.expect(-sections.length);
      throw error;
    }
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

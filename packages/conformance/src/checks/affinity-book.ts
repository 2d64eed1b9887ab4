import { affinityOf, mayServe } from "../oracle/affinity-of.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Packet } from "../oracle/packet.ts";
import { verdictOf } from "../oracle/verdict-of.ts";

interface Entry {
  readonly packet: Packet;
  readonly related: readonly string[];
  readonly endpoint: string;
  readonly seconds: number;
  readonly untilMs: number;
  /** Its endpoint was gone, or its row changed, at some time: from then on it may be kept or not. */
  isDoubtful: boolean;
  /** Its endpoint was gone at some time: who was sent elsewhere since is not to be sent back. */
  wasGone: boolean;
}

/** What is remembered of a client: `kept` must go to `endpoint`, `doubtful` may. */
export interface Remembered {
  readonly is: "kept" | "doubtful";
  readonly endpoint: string;
}

/** Knows, by the oracle alone, which client has to be sent where it was sent before. */
export class AffinityBook {
  readonly #entries = new Map<string, Entry>();

  /** Note a connection that stays. */
  connected(world: OracleWorld, packet: Packet, endpoint: string, nowMs: number): void {
    const entry = affinityOf(world, packet);
    if (entry === undefined) return;
    const { key, related, seconds } = entry;
    const before = this.#entries.get(key);
    // Sent elsewhere than before, e.g. by another way: a backend may remember both.
    const isDoubtful = before !== undefined && before.untilMs >= nowMs && before.endpoint !== endpoint && !before.wasGone;
    this.#entries.set(key, { packet, related, endpoint, seconds, untilMs: nowMs + seconds * 1000, isDoubtful, wasGone: false });
  }

  /** Look at all entries after a change. */
  review(world: OracleWorld, forgetsAll: boolean = false): void {
    for (const [key, entry] of this.#entries) {
      entry.wasGone ||= !mayServe(world, entry.packet, entry.endpoint);
      if (entry.isDoubtful) continue;
      const now = affinityOf(world, entry.packet);
      entry.isDoubtful = forgetsAll || now?.key !== key || now.seconds !== entry.seconds || !isAnswer(world, entry.packet, entry.endpoint);
    }
  }

  /** What is remembered of this packet's client; undefined: nothing, it may go anywhere. */
  find(world: OracleWorld, packet: Packet, nowMs: number): Remembered | undefined {
    const asked = affinityOf(world, packet);
    if (asked === undefined) return undefined;
    const entry = this.#entries.get(asked.key);
    if (entry === undefined || nowMs > entry.untilMs) {
      // Where each address has its entries, some addresses may share them, and they may outlive the row that had the address.
      const other = [...this.#entries.values()].find(
        ({ related, untilMs }) => nowMs <= untilMs && related.some((one) => asked.related.includes(one)),
      );
      return other === undefined ? undefined : { is: "doubtful", endpoint: other.endpoint };
    }
    // Another way to the same row may lead to other endpoints.
    if (entry.isDoubtful || nowMs === entry.untilMs) return { is: "doubtful", endpoint: entry.endpoint };
    return isAnswer(world, packet, entry.endpoint) ? { is: "kept", endpoint: entry.endpoint } : undefined;
  }
}

function isAnswer(world: OracleWorld, packet: Packet, endpoint: string): boolean {
  const verdict = verdictOf(world, packet);
  return verdict.is === "forward" && verdict.answers.some((answer) => answer.endpoint === endpoint);
}

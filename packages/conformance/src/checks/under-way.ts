import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Packet, Verdict } from "../oracle/packet.ts";
import { verdictOf } from "../oracle/verdict-of.ts";
import type { FakeHost, Trace } from "../runner/fake-host.ts";
import type { Found } from "./findings.ts";
import { offendedBy } from "./offended.ts";
import { missedBy, together, wordsOfTrace, wordsOfVerdict } from "./judge.ts";

/** Draws by which a server that is chosen at rest has shown itself: of nine, one is missed once in 10^10 times. */
const DRAWS_AT_REST = 200;

/** A packet to follow while a change is under way, and who asks for what in a few words. */
export interface WatchedPacket {
  readonly what: string;
  readonly packet: Packet;
}

/** What was in force before a change: what this world asks for, or nothing at all. */
export type Applied = OracleWorld | "nothing";

interface Watched extends WatchedPacket {
  /** All that may be seen of it, in words. */
  readonly allowed: readonly string[];
  readonly because: readonly string[];
}

/**
 * Looks at packets which a change doesn't concern, or not as a whole, while it is under way.
 *
 * Shape: those that are forwarded before and after, refused before and after, and so on; each must at every moment meet a fate that it may
 * meet before or after. Where an endpoint is to see another source than before, the packet isn't looked at. Where all endpoints are others
 * and see another source (an address that passes from one kind and row to another), any of them may see either with the variant `rowChanges`.
 * Edges: what still is so when the change is done is not told of: that is for whoever looks at rest.
 */
export class UnderWay {
  readonly #host: Pick<FakeHost, "trace">;
  readonly #random: () => number;
  readonly #watched: readonly Watched[];
  readonly #offended = new Map<Watched, Trace>();

  constructor(
    host: Pick<FakeHost, "trace">,
    { before, after, packets }: { readonly before: Applied; readonly after: OracleWorld; readonly packets: readonly WatchedPacket[] },
    random: () => number,
  ) {
    this.#host = host;
    this.#random = random;
    const different = new Map(packets.map((one) => [JSON.stringify(one.packet), one]));
    this.#watched = [...different.values()].flatMap((one) => watchOf(one, before, after));
  }

  /** Follow every packet once. */
  look(): void {
    for (const watched of this.#watched) {
      if (this.#offended.has(watched)) continue;
      const trace = this.#host.trace(watched.packet, this.#random);
      if (!watched.allowed.includes(wordsOfTrace(trace, watched.packet))) this.#offended.set(watched, trace);
    }
  }

  /** What was seen that should not have been; to be asked once the change is done. */
  found(): readonly (Found & { readonly rules: readonly string[] })[] {
    return [...this.#offended].flatMap(([{ what, packet, allowed, because }, trace]) => {
      const got = wordsOfTrace(trace, packet);
      if (this.#isSeenAtRest(packet, got)) return [];
      const { family, protocol } = packet;
      return [
        {
          kind: "verdict",
          family,
          protocol,
          what: `${what}, while the change was under way`,
          expected: together(allowed),
          got,
          rules: offendedBy(because, missedBy(allowed, got, packet)),
          details: [...(because.length === 0 ? [] : [`by ${because.join(", ")}`]), ...trace.path],
        },
      ];
    });
  }

  #isSeenAtRest(packet: Packet, words: string): boolean {
    for (let draws = 0; draws < DRAWS_AT_REST; draws++)
      if (wordsOfTrace(this.#host.trace(packet, this.#random), packet) === words) return true;
    return false;
  }
}

function watchOf(one: WatchedPacket, active: Applied, world: OracleWorld): readonly Watched[] {
  const { packet } = one;
  const before: Verdict = active === "nothing" ? { is: "pass", because: [] } : verdictOf(active, packet);
  const after = verdictOf(world, packet);
  if (!isLike(before, after)) return [];
  const allowed = [
    ...new Set(
      [before, after, ...(world.variants.rowChanges === "inParts" ? crossed(before, after) : [])].flatMap((verdict) =>
        wordsOfVerdict(verdict, packet),
      ),
    ),
  ];
  return [{ ...one, allowed, because: after.because }];
}

type Forward = Extract<Verdict, { readonly is: "forward" }>;

/** What may be seen besides while all endpoints and all sources change at once, which some dataplanes can do only one after the other. */
function crossed(before: Verdict, after: Verdict): readonly Verdict[] {
  if (before.is !== "forward" || after.is !== "forward") return [];
  const isMasqueraded = before.answers[0]?.masquerade === true;
  const isOpposite =
    before.answers.every(({ masquerade }) => masquerade === isMasqueraded) &&
    after.answers.every(({ masquerade }) => masquerade !== isMasqueraded);
  return isOpposite ? [turned(before), turned(after)] : [];
}

/** The same endpoints, which see the other source. */
function turned(verdict: Forward): Forward {
  return { ...verdict, answers: verdict.answers.map((answer) => ({ ...answer, masquerade: !answer.masquerade })) };
}

/** Whether all that changes, if anything, is which endpoints there are. */
function isLike(before: Verdict, after: Verdict): boolean {
  if (before.is !== "forward" || after.is !== "forward") return before.is === after.is;
  const masquerades = new Map(before.answers.map(({ endpoint, masquerade }) => [endpoint, masquerade]));
  return after.answers.every(({ endpoint, masquerade }) => (masquerades.get(endpoint) ?? masquerade) === masquerade);
}

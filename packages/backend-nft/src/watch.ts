import type { HostEvent, IPFamily } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { CommitMark, EchoCount, LinuxWorld, NftEvent, OwnCommits } from "@turnout/host";
import { NFT_FAMILY, TABLE } from "./names.ts";
import type { NftFacts } from "./options.ts";
import { readFacts } from "./probe.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: Pick<LinuxWorld, "netlink" | "clock">;
  readonly family: IPFamily;
  /** Counts the commits of both families. */
  readonly own: OwnCommits;
  readonly echoes: EchoCount;
  /** When the table was last read; undefined: never. */
  readonly mark: CommitMark | undefined;
}

/**
 * Tell of the host's addresses, as they are now and when they change, and of commits to our table by anybody else, also between the last reading
 * and now.
 *
 * Edges: where the kernel could not tell everything, the ruleset's generation says whether anybody else was at it.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<NftFacts>> {
  const { world, echoes } = options;
  const inbox = new Inbox<{ readonly event: NftEvent | "addresses" }>(world.clock, signal);
  inbox.follow(world.netlink.watchNft(signal), (event) => ({ event }));
  inbox.follow(world.netlink.watchAddresses(signal), () => ({ event: "addresses" }));
  const missed = new MissedCommits(options, signal);
  const areThere = await missed.areThere();
  // Echoes of what was committed until then are covered.
  echoes.start();
  yield { kind: "facts", facts: await readFacts(world) };
  if (areThere) yield { kind: "drift", what: "the ruleset changed before it was watched" };
  for (let news = await inbox.next(); typeof news !== "string"; news = await inbox.next()) {
    if (news.event === "addresses") {
      yield { kind: "facts", facts: await readFacts(world) };
      continue;
    }
    const what = await foreignChange(news.event, options, missed);
    if (what !== undefined) yield { kind: "drift", what };
  }
}

/** Say what somebody else did to our table, if this event tells so. */
async function foreignChange(event: NftEvent, { family, echoes }: WatchOptions, missed: MissedCommits): Promise<string | undefined> {
  const table = `${NFT_FAMILY[family]} ${TABLE}`;
  if (event.kind === "lost") {
    const areThere = await missed.areThere();
    echoes.start();
    return areThere ? "the ruleset changed faster than the kernel could tell" : undefined;
  }
  if (!event.tables.includes(table) || missed.haveCovered(event.generation)) return undefined;
  return echoes.consume() ? undefined : `${event.process} (pid ${event.pid}) changed table ${table}`;
}

/** Finds commits of others that no event told of. */
class MissedCommits {
  readonly #options: WatchOptions;
  readonly #signal: AbortSignal;
  #mark: CommitMark | undefined;

  constructor(options: WatchOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#mark = options.mark;
  }

  /** Tell whether there are some since the last call. Commits to other people's tables count: they can't be told apart. */
  async areThere(): Promise<boolean> {
    const { own, world } = this.#options;
    const { netlink, clock } = world;
    const mark = this.#mark;
    const quiet = mark === undefined ? undefined : await own.undisturbedMark(mark, netlink, clock, this.#signal);
    this.#mark = quiet ?? (await own.mark(netlink));
    return mark !== undefined && quiet === undefined && !this.#signal.aborted;
  }

  /** Tell whether a commit was among those of the last call: what is told of it late is no news. */
  haveCovered(generation: number): boolean {
    return this.#mark !== undefined && generation <= this.#mark.generation;
  }
}

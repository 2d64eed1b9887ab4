import type { Drift, HostEvent, IPFamily } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { CommitMark, EchoCount, LinuxWorld, NftEvent, OwnCommits } from "@turnout/host";
import { leftObjects } from "./left.ts";
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
    const drift = await externalDrift(news.event, options, missed);
    if (drift !== undefined) yield drift;
  }
}

/** What somebody else did to our table, if this event tells so. */
async function externalDrift(event: NftEvent, { family, echoes, world }: WatchOptions, missed: MissedCommits): Promise<Drift | undefined> {
  const table = `${NFT_FAMILY[family]} ${TABLE}`;
  const nowMs = world.clock.nowMs();
  if (event.kind === "lost") {
    const areThere = await missed.areThere();
    echoes.start(nowMs);
    return areThere ? { kind: "drift", what: "the ruleset changed faster than the kernel could tell" } : undefined;
  }
  if (!event.tables.includes(table) || missed.haveCovered(event.generation)) return undefined;
  const whose = echoes.hear(nowMs);
  if (whose === "ours") return undefined;
  const what = `${event.process} (pid ${event.pid}) changed table ${table}`;
  const left = whose === "another's" ? leftObjects(event.changes(), family) : undefined;
  return { kind: "drift", what, ...(left === undefined ? {} : { left }) };
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
    this.#mark = quiet ?? (await own.settledMark(netlink, clock, this.#signal));
    return mark !== undefined && quiet === undefined && !this.#signal.aborted;
  }

  /** Tell whether a commit was among those of the last call: what is told of it late is no news. */
  haveCovered(generation: number): boolean {
    return this.#mark !== undefined && generation <= this.#mark.generation;
  }
}

import type { Clock, HostEvent, IPFamily, NftEvent, World } from "@turnout/core";
import { ownCommitsOf } from "@turnout/host";
import type { CommitMark, EchoCount } from "@turnout/host";
import type { IptablesFacts } from "./options.ts";
import { readFacts } from "./probe.ts";
import type { IptablesTool } from "./tool.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: World;
  readonly family: IPFamily;
  readonly tool: Pick<IptablesTool, "choice" | "hasCanary">;
  readonly echoes: EchoCount;
  /** When the host was last looked at; undefined: never. */
  readonly mark: CommitMark | undefined;
}

/** The canary is looked for this often, in ms. @source semantics.md 5.6 */
export const CANARY_MS = 30_000;
/**
 * Tell of changed host addresses, and of others' hands on our chains.
 *
 * Shape: with the nft variant the kernel tells who commits; but the tables are everybody's (CNI plugins, kubelet), so a commit may concern ours or
 * not: comparing tells, and whoever does that knows what it costs. The legacy variant tells nothing: its canary, which shows a flush, is looked
 * for every half minute.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<IptablesFacts>> {
  const { world, tool, echoes } = options;
  const isTold = (await tool.choice(signal)).variant === "nft";
  const inbox = new Inbox(world.clock, signal);
  if (isTold) inbox.follow(world.netlink.watchNft(signal), (event) => ({ is: "commit", event }));
  inbox.follow(world.netlink.watchAddresses(signal), () => ({ is: "addresses" }));
  echoes.start();
  if (isTold && (await hasMissed(options, signal))) yield { kind: "drift", what: "the ruleset changed before it was watched" };
  let canaryDueMs = world.clock.nowMs() + CANARY_MS;
  for (;;) {
    const news = await inbox.next(canaryDueMs);
    if (news.is === "end" || signal.aborted) return;
    if (news.is === "addresses") {
      yield { kind: "facts", facts: await readFacts(world, signal) };
    } else if (news.is === "commit") {
      const what = foreignCommit(news.event, options);
      if (what !== undefined) yield { kind: "drift", what };
    } else {
      canaryDueMs = world.clock.nowMs() + CANARY_MS;
      if (!(await tool.hasCanary(signal))) yield { kind: "drift", what: "the canary is gone from table mangle: somebody flushed iptables" };
    }
  }
}

/** What there is to hear of. */
type News =
  | { readonly is: "commit"; readonly event: NftEvent }
  | { readonly is: "addresses" }
  | { readonly is: "due" }
  | { readonly is: "end"; readonly error?: unknown };

/**
 * Takes in what several sources tell, for one reader who also waits for a time.
 *
 * Not a race of their promises: one of them may be pending for weeks, and would keep something of every race.
 */
class Inbox {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #news: News[] = [];
  #wake: () => void = () => undefined;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** Take in what a source tells, until it ends. */
  follow<T>(source: AsyncIterable<T>, newsOf: (told: T) => News): void {
    const told = source[Symbol.asyncIterator]();
    const pump = async (): Promise<void> => {
      for (let next = await told.next(); next.done !== true; next = await told.next()) this.#put(newsOf(next.value));
      this.#put({ is: "end" });
    };
    pump().catch((error: unknown) => this.#put({ is: "end", error }));
  }

  /** The next news, or that the time has come. @throws what a source failed with. */
  async next(dueMs: number): Promise<News> {
    if (this.#news.length === 0 && dueMs > this.#clock.nowMs()) {
      const awake = new AbortController();
      this.#wake = (): void => awake.abort();
      this.#signal.addEventListener("abort", this.#wake, { once: true });
      if (!this.#signal.aborted) await this.#clock.sleep(dueMs - this.#clock.nowMs(), awake.signal);
      this.#signal.removeEventListener("abort", this.#wake);
    }
    const news = this.#signal.aborted ? { is: "end" as const } : (this.#news.shift() ?? { is: "due" as const });
    if (news.is === "end" && "error" in news) throw news.error;
    return news;
  }

  #put(news: News): void {
    this.#news.push(news);
    this.#wake();
  }
}

/** Tell whether somebody else committed between the last look and now. Commits to other people's tables count: they can't be told apart. */
async function hasMissed({ world, mark }: WatchOptions, signal: AbortSignal): Promise<boolean> {
  const { netlink, clock } = world;
  return mark !== undefined && !(await ownCommitsOf(netlink).isUndisturbedSince(mark, netlink, clock, signal));
}

/** Say what somebody else did to the tables we share, if this event tells so. */
function foreignCommit(event: NftEvent, { family, echoes }: WatchOptions): string | undefined {
  if (event.kind === "lost") {
    echoes.start();
    return "the ruleset changed faster than the kernel could tell";
  }
  const ip = family === "IPv4" ? "ip" : "ip6";
  const touched = event.tables.filter((table) => ["nat", "filter", "mangle"].some((name) => table === `${ip} ${name}`));
  if (touched.length === 0 || echoes.take()) return undefined;
  return `${event.process} (pid ${event.pid}) changed table ${touched.join(", ")}`;
}

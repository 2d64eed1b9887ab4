import type { Drift, HostEvent, IPFamily } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { CommitMark, EchoCount, LinuxWorld, NftEvent, OwnCommits } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import { CANARY } from "./layout.ts";
import { seeChains, touchedChains } from "./seen.ts";
import type { IptablesFacts } from "./options.ts";
import { readFacts } from "./probe.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: LinuxWorld;
  readonly family: IPFamily;
  /** Counts the commits of both families. */
  readonly own: OwnCommits;
  readonly tool: Pick<IptablesTool, "choice" | "hasChain" | "listChain">;
  /** The guard of 127.0.0.0/8 is ours, too. */
  readonly hasGuard: boolean;
  readonly echoes: EchoCount;
  /** When the host was last looked at; undefined: never. */
  readonly mark: CommitMark | undefined;
}

/** The canary is looked for this often, in ms. @source kube-proxy pkg/util/iptables/iptables.go Monitor */
export const CANARY_MS = 30_000;

/**
 * Tell of the host's addresses, as they are now and when they change, and of what others do to our chains.
 *
 * Shape: with the nft variant the kernel tells who commits; but the tables are everybody's (CNI plugins, kubelet), so a commit may concern ours or
 * not: comparing tells, and whoever does that knows what it costs. The legacy variant tells nothing: its canary, which shows a flush, is looked
 * for every half minute.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<IptablesFacts>> {
  const { world, tool, echoes } = options;
  const isTold = (await tool.choice(signal)).variant === "nft";
  const inbox = new Inbox<News>(world.clock, signal);
  if (isTold) inbox.follow(world.netlink.watchNft(signal), (event) => ({ is: "commit", event }));
  inbox.follow(world.netlink.watchAddresses(signal), () => ({ is: "addresses" }));
  echoes.start();
  const isMissed = isTold && (await hasMissed(options, signal));
  yield { kind: "facts", facts: await readFacts(world, signal) };
  if (isMissed) yield { kind: "drift", what: "the ruleset changed before it was watched" };
  let canaryDueMs = world.clock.nowMs() + CANARY_MS;
  for (;;) {
    const news = await inbox.next(canaryDueMs);
    if (news === "end") return;
    if (news === "due") {
      canaryDueMs = world.clock.nowMs() + CANARY_MS;
      if (!(await tool.hasChain("mangle", CANARY, signal)))
        yield { kind: "drift", what: "the canary is gone from table mangle: somebody flushed iptables" };
    } else if (news.is === "addresses") {
      yield { kind: "facts", facts: await readFacts(world, signal) };
    } else {
      const drift = await foreignDrift(news.event, options, signal);
      if (drift !== undefined) yield drift;
    }
  }
}

/** What there is to hear of. */
type News = { readonly is: "commit"; readonly event: NftEvent } | { readonly is: "addresses" };

/** Tell whether somebody else committed between the last look and now. Commits to other people's tables count: they can't be told apart. */
async function hasMissed({ world, own, mark }: WatchOptions, signal: AbortSignal): Promise<boolean> {
  const { netlink, clock } = world;
  return mark !== undefined && !(await own.isUndisturbedSince(mark, netlink, clock, signal));
}

/** What somebody else did to our chains, or may have done, if this event tells so. */
async function foreignDrift(event: NftEvent, options: WatchOptions, signal: AbortSignal): Promise<Drift | undefined> {
  const { family, echoes, world } = options;
  const nowMs = world.clock.nowMs();
  if (event.kind === "lost") {
    echoes.start(nowMs);
    return { kind: "drift", what: "the ruleset changed faster than the kernel could tell" };
  }
  const ip = family === "IPv4" ? "ip" : "ip6";
  const touched = event.tables.filter((table) => ["nat", "filter", "mangle"].some((name) => table === `${ip} ${name}`));
  if (touched.length === 0) return undefined;
  const whose = echoes.hear(nowMs);
  if (whose === "ours") return undefined;
  const chains = whose === "another's" ? touchedChains(event.changes(), family) : undefined;
  // In chains of others alone.
  if (chains?.size === 0) return undefined;
  const left = chains === undefined ? undefined : await seeChains(chains, options, signal);
  return {
    kind: "drift",
    what: `${event.process} (pid ${event.pid}) changed table ${touched.join(", ")}`,
    ...(left === undefined ? {} : { left }),
  };
}

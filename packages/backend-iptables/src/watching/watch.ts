import type { Drift, HostEvent, IPFamily } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { CommitMark, EchoCount, LinuxWorld, NftEvent, OwnCommits, FingerprintChanges, FingerprintWatch } from "@turnout/host";
import { explainLegacyFingerprints } from "@turnout/host/iptables";
import type { IptablesTool } from "@turnout/host/iptables";
import type { TableName } from "@turnout/host/iptables/text";
import { seeChains, seeTables, touchedChains } from "./seen.ts";
import type { IptablesFacts } from "../options.ts";
import { readFacts } from "../probe.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: LinuxWorld;
  readonly family: IPFamily;
  /** Counts the commits of both families. */
  readonly own: OwnCommits;
  readonly tool: Pick<IptablesTool, "choice" | "listChain" | "save">;
  /** The guard of 127.0.0.0/8 is ours, too. */
  readonly hasGuard: boolean;
  readonly echoes: EchoCount;
  /** How much the tables of the legacy variant hold. */
  readonly fingerprints: Pick<FingerprintWatch, "follow" | "sinceNow">;
  /** When the host was last looked at; undefined: never. */
  readonly mark: CommitMark | undefined;
}

/**
 * Tell of the host's addresses, as they are now and when they change, and of what others do to our chains.
 *
 * Shape: with the nft variant the kernel tells who commits; but the tables are everybody's (CNI plugins, kubelet), so a commit may concern ours or
 * not: comparing tells, and whoever does that knows what it costs. Of the legacy variant it tells how much each table holds, when it is asked.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<IptablesFacts>> {
  const { world, tool, echoes } = options;
  const isReported = (await tool.choice(signal)).variant === "nft";
  const inbox = new Inbox<News>(world.clock, signal);
  if (isReported) inbox.follow(world.netlink.watchNft(signal), (event) => ({ is: "commit", event }));
  else inbox.follow(options.fingerprints.follow(signal), (changes) => ({ is: "fingerprints", changes }));
  inbox.follow(world.netlink.watchAddresses(signal), () => ({ is: "addresses" }));
  echoes.start();
  const isMissed = isReported && (await hasMissed(options, signal));
  yield { kind: "facts", facts: await readFacts(world, signal) };
  if (isMissed) yield { kind: "drift", what: "the ruleset changed before it was watched" };
  for (;;) {
    const news = await inbox.next();
    if (news === "end" || news === "due") return;
    if (news.is === "fingerprints") {
      yield await tableDrift(news.changes, options, signal);
    } else if (news.is === "addresses") {
      yield { kind: "facts", facts: await readFacts(world, signal) };
    } else {
      const drift = await externalDrift(news.event, options, signal);
      if (drift !== undefined) yield drift;
    }
  }
}

/** What there is to hear of. */
type News =
  | { readonly is: "commit"; readonly event: NftEvent }
  | { readonly is: "fingerprints"; readonly changes: FingerprintChanges }
  | { readonly is: "addresses" };

/** What somebody did to tables of the legacy variant, which others change, too. */
async function tableDrift(changes: FingerprintChanges, options: WatchOptions, signal: AbortSignal): Promise<Drift> {
  if (changes.size === 0) return { kind: "drift", what: "more was changed than could be looked at" };
  const left = await seeTables([...changes.keys()] as readonly TableName[], options, signal);
  return { kind: "drift", what: explainLegacyFingerprints(changes), left };
}

/** Tell whether somebody else committed between the last look and now. Commits to other people's tables count: they can't be told apart. */
async function hasMissed({ world, own, mark }: WatchOptions, signal: AbortSignal): Promise<boolean> {
  const { netlink, clock } = world;
  return mark !== undefined && !(await own.isUndisturbedSince(mark, netlink, clock, signal));
}

/** What somebody else did to our chains, or may have done, if this event tells so. */
async function externalDrift(event: NftEvent, options: WatchOptions, signal: AbortSignal): Promise<Drift | undefined> {
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

import type { Drift, HostEvent, SeenPart } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { EchoCount, NftEvent, FingerprintChanges } from "@turnout/host";
import { TABLE_OBJECT } from "../packets/nft-table.ts";
import type { EbpfFacts, EbpfOptions } from "../options.ts";
import { readFacts } from "../probe.ts";
import type { EbpfWorld } from "../world.ts";

/** How often it is looked for network namespaces that are opted out, in ms: nothing tells of them. */
const POLL_MS = 5_000;

/** Where reading facts takes so long, as on a router with very many routes, it rests so long before the next reading. */
const LONG_MS = 1_000;
const REST_MS = 2_000;

/** Where packets can't be served it is looked so often whether they can be by now, in ms: nothing reports that a module was loaded. */
const PROBE_MS = 60_000;

/** What is watched beside addresses. */
export interface Watched {
  /** Packets are served here, by programs at devices. */
  readonly hasPackets: boolean;
  /** Look whether packets can be served by now; asked once a minute where they aren't. */
  readonly canServePackets: () => Promise<boolean>;
  /** Echoes of our commits to the table of nft; undefined: the other family watches it. */
  readonly echoes: EchoCount | undefined;
  /** Look at the table of nft alone. @throws {ProxyError} */
  readonly seeTable: () => Promise<SeenPart>;
  /** Others' changes of what the kernel doesn't notify, until the signal aborts. */
  readonly fingerprints: (signal: AbortSignal) => readonly AsyncIterable<FingerprintChanges>[];
  /** Look at what was changed; undefined: nothing of this family's. */
  readonly see: (changes: FingerprintChanges) => Promise<Drift | undefined>;
}

/** What there is to hear of; neither: facts. */
interface News {
  readonly commit?: NftEvent;
  readonly changes?: FingerprintChanges;
}

/**
 * Tell of the host's addresses and devices and of network namespaces that are opted out, as they are now and when they change; and of others' changes to
 * the table of nft, to maps and to what is attached. Ends before it is stopped when packets can be served that couldn't be: then there is more to watch.
 */
export async function* watchHost(
  options: EbpfOptions,
  world: EbpfWorld,
  { hasPackets, canServePackets, echoes, seeTable, fingerprints, see }: Watched,
  signal: AbortSignal,
): AsyncIterable<HostEvent<EbpfFacts>> {
  const { clock, netlink } = world;
  const inbox = new Inbox<News>(clock, signal);
  inbox.follow(netlink.watchAddresses(signal), () => ({}));
  if (hasPackets) inbox.follow(netlink.watchDevices(signal), () => ({}));
  if (hasPackets && echoes !== undefined) inbox.follow(netlink.watchNft(signal), (commit) => ({ commit }));
  for (const one of fingerprints(signal)) inbox.follow(one, (changes) => ({ changes }));
  echoes?.start();
  let probeMs = hasPackets ? Number.POSITIVE_INFINITY : clock.nowMs() + PROBE_MS;
  const nextMs = (): number =>
    Math.min(probeMs, options.optOutNamespaces.length === 0 ? Number.POSITIVE_INFINITY : clock.nowMs() + POLL_MS);
  let news: News | "due" | "end" = "due";
  while (news !== "end") {
    if (clock.nowMs() >= probeMs) {
      if (await canServePackets()) return;
      probeMs = clock.nowMs() + PROBE_MS;
    }
    if (news !== "due" && news.changes !== undefined) {
      const drift = await see(news.changes);
      if (drift !== undefined) yield drift;
    } else if (news === "due" || news.commit === undefined) {
      const sinceMs = clock.nowMs();
      const facts = await readFacts(options, world, hasPackets);
      const tookMs = clock.nowMs() - sinceMs;
      yield { kind: "facts", facts };
      if (tookMs >= LONG_MS) await clock.sleep(REST_MS, signal);
    } else {
      const what = externalChange(news.commit, echoes);
      if (what !== undefined) yield { kind: "drift", what, ...(news.commit.kind === "lost" ? {} : { left: await seeTable() }) };
    }
    news = await inbox.next(nextMs());
  }
}

/** Say what another program did to our table, if this event tells so. */
function externalChange(event: NftEvent, echoes: EchoCount | undefined): string | undefined {
  if (event.kind === "lost") return "the ruleset of nft changed faster than the kernel could tell";
  if (!event.tables.includes(TABLE_OBJECT.key) || echoes?.consume() === true) return undefined;
  return `${event.process} (pid ${event.pid}) changed table ${TABLE_OBJECT.key}`;
}

import type { Drift, HostEvent } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { EchoCount, NftEvent, FingerprintChanges } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import type { IpvsFacts } from "./options.ts";
import { readFacts } from "./probe.ts";
import { seeTouched } from "./seen.ts";
import type { Sight } from "./seen.ts";
import { explainFingerprints, tablesTouched, touchedBy } from "./fingerprints.ts";
import type { BoundCount } from "./fingerprints.ts";
import type { Watches } from "./watches.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly parts: Sight["parts"];
  readonly tool: Pick<IptablesTool, "choice" | "save">;
  readonly echoes: EchoCount;
  readonly watches: Pick<Watches, "follow" | "look" | "sinceNow">;
  readonly bound: BoundCount;
}

/** What there is to hear of; neither: addresses. */
interface News {
  readonly commit?: NftEvent;
  readonly changes?: FingerprintChanges;
}

/** Tell of the host's addresses, as they are now and when they change, and of what others do to what is ours. */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<IpvsFacts>> {
  const { parts, tool, echoes, watches, bound } = options;
  const { netlink, clock } = parts.world;
  const isNft = (await tool.choice(signal)).variant === "nft";
  const inbox = new Inbox<News>(clock, signal);
  inbox.follow(netlink.watchAddresses(signal), () => {
    bound.forget();
    // Ours may be among them; a failure is told to those who follow.
    void watches.look();
    return {};
  });
  bound.forget();
  if (isNft) inbox.follow(netlink.watchNft(signal), (commit) => ({ commit }));
  for (const fingerprints of watches.follow(signal)) inbox.follow(fingerprints, (changes) => ({ changes }));
  echoes.start();
  // What changed since the probe is told, too.
  yield { kind: "facts", facts: await readFacts(parts.world) };
  for (let news = await inbox.next(); news !== "end" && news !== "due"; news = await inbox.next()) {
    if (news.changes !== undefined) yield await fingerprintDrift(news.changes, options, signal);
    else if (news.commit === undefined) yield { kind: "facts", facts: await readFacts(parts.world) };
    else {
      const drift = await commitDrift(news.commit, options, signal);
      if (drift !== undefined) yield drift;
    }
  }
}

async function fingerprintDrift(changes: FingerprintChanges, options: WatchOptions, signal: AbortSignal): Promise<Drift> {
  if (changes.size === 0) return { kind: "drift", what: "more was changed than could be looked at" };
  return { kind: "drift", what: explainFingerprints(changes), left: await seeTouched(touchedBy(changes), options, signal) };
}

/** What somebody else did to rules of ours, or may have done, if a commit tells so. */
async function commitDrift(event: NftEvent, options: WatchOptions, signal: AbortSignal): Promise<Drift | undefined> {
  const { parts, echoes } = options;
  const nowMs = parts.world.clock.nowMs();
  if (event.kind === "lost") {
    echoes.start(nowMs);
    return { kind: "drift", what: "the ruleset changed faster than the kernel could tell" };
  }
  const ip = parts.family === "IPv4" ? "ip" : "ip6";
  const tables = tablesTouched(event, parts.family);
  if (tables.size === 0) return undefined;
  const whose = echoes.hear(nowMs);
  if (whose === "ours") return undefined;
  const what = `${event.process} (pid ${event.pid}) changed table ${Array.from(tables, (table) => `${ip} ${table}`).join(", ")}`;
  if (whose === "perhaps another's") return { kind: "drift", what };
  return { kind: "drift", what, left: await seeTouched({ tables, parts: new Set(), sets: new Map(), addresses: false }, options, signal) };
}

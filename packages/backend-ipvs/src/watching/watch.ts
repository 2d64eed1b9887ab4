import { objectId } from "@turnout/core/backend";
import type { Drift, HostEvent, KernelObject, SeenPart } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { EchoCount, NftEvent, FingerprintChanges } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import { placeOf } from "@turnout/host/iptables/text";
import { partOf, PARTS } from "@turnout/host/ipvs/model";
import type { IpvsFacts } from "../options.ts";
import { readFacts } from "../probe.ts";
import { explainFingerprints, tablesTouched, touchedBy } from "./fingerprints.ts";
import type { BoundCount, Touched } from "./fingerprints.ts";
import type { Watches } from "./watches.ts";
import { lookAtParts } from "../host-look.ts";
import type { HostParts } from "../host-look.ts";
import { readKey } from "../objects.ts";
import type { IpvsObject } from "../objects.ts";
import { readLook } from "../observe.ts";
import { virtualOf } from "../plan.ts";
import { setNameOf } from "../sets.ts";

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

/** What seeing takes. */
interface Sight {
  readonly parts: HostParts;
  readonly tool: Pick<IptablesTool, "save">;
  readonly watches: Pick<Watches, "sinceNow">;
}

/** Look at what was touched, and at nothing else. @throws {ProxyError} what looking fails with. */
async function seeTouched(touched: Touched, { parts, tool, watches }: Sight, signal: AbortSignal): Promise<SeenPart> {
  const isCurrent = watches.sinceNow();
  const look = await lookAtParts(parts, tool, touched, signal);
  const covers = coverageOf(touched);
  const found = [...readLook(look, parts.family, parts.options).objects.values()].filter(covers);
  return { covers, objects: new Map<string, KernelObject>(found.map((object) => [objectId(object), object])), isCurrent };
}

/** Tell the objects that are in what was touched. Of a set that was emptied the members alone are known. */
function coverageOf({ tables, parts, sets, addresses }: Touched): (object: KernelObject) => boolean {
  const known = new Map<string, boolean>();
  const isInParts = (key: string): boolean => {
    const isIn = known.get(key) ?? parts.has(partOf(readKey(key)));
    known.set(key, isIn);
    return isIn;
  };
  return (object) => {
    const one = object as IpvsObject;
    switch (one.kind) {
      case "service":
        return parts.size === PARTS || (parts.size > 0 && isInParts(one.key));
      case "server":
        return parts.size === PARTS || (parts.size > 0 && isInParts(virtualOf(one)));
      case "address":
        return addresses;
      case "entry":
        return sets.size > 0 && sets.has(setNameOf(one));
      case "set":
        return sets.has(one.key) && sets.get(one.key) !== false;
      case "sysctl":
      case "timeout":
        return false;
      default:
        return tables.has(placeOf(one).table);
    }
  };
}

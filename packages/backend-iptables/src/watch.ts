import type { HostEvent, IPFamily, NftEvent, World } from "@turnout/core";
import type { IptablesFacts } from "./options.ts";
import type { OwnCommits } from "./own-commits.ts";
import { readFacts } from "./probe.ts";
import type { IptablesTool } from "./tool.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: World;
  readonly family: IPFamily;
  readonly tool: IptablesTool;
  readonly own: OwnCommits;
  /** How long the last look at the host took, in ms: what looks cost decides how often there may be one. */
  readonly lookMs: () => number;
}

/** The canary is looked for this often, in ms, where nobody tells of changes. @source semantics.md 5.6 */
const CANARY_MS = 30_000;
/** After a commit of somebody else's to the tables we share, the whole is compared after this long, in ms, at the soonest… */
const LOOK_MIN_MS = 1_000;
/** …and so that looking takes no more than this part of the time. */
const LOOK_SHARE = 0.05;

type Winner =
  | { readonly by: "timer" }
  | { readonly by: "commit"; readonly event: NftEvent | undefined }
  | { readonly by: "addresses"; readonly isEnd: boolean };

/**
 * Tell of changed host addresses, and of others' hands on our chains.
 *
 * Shape: with the nft variant the kernel tells who commits; the tables are everybody's (CNI plugins, kubelet), so the canary is looked for
 * at once, which shows a flush, and the whole is compared a while later. The legacy variant tells nothing: the canary is looked for
 * every half minute.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<IptablesFacts>> {
  const { world, tool, own } = options;
  const isTold = (await tool.choice(signal)).variant === "nft";
  const commits = isTold ? world.netlink.watchNft(signal)[Symbol.asyncIterator]() : undefined;
  const addresses = world.netlink.watchAddresses(signal)[Symbol.asyncIterator]();
  own.start();
  const nextCommit = (): Promise<Winner> | undefined =>
    commits?.next().then(({ done, value }) => ({ by: "commit", event: done === true ? undefined : value }));
  const nextAddresses = (): Promise<Winner> => addresses.next().then(({ done }) => ({ by: "addresses", isEnd: done === true }));
  let commit = nextCommit();
  let address = nextAddresses();
  /** Since when somebody may have changed what the canary doesn't show. */
  let suspect: { readonly what: string; readonly dueMs: number } | undefined;
  let canaryMs = world.clock.nowMs() + CANARY_MS;
  while (!signal.aborted) {
    const dueMs = Math.min(suspect?.dueMs ?? Number.POSITIVE_INFINITY, canaryMs);
    const stop = new AbortController();
    const timer = world.clock.sleep(Math.max(0, dueMs - world.clock.nowMs()), AbortSignal.any([signal, stop.signal]));
    const waits: Promise<Winner>[] = [address, timer.then((): Winner => ({ by: "timer" }))];
    if (commit !== undefined) waits.push(commit);
    const winner = await Promise.race(waits);
    stop.abort();
    if (signal.aborted) return;
    if (winner.by === "addresses") {
      if (winner.isEnd) return;
      address = nextAddresses();
      yield { kind: "facts", facts: await readFacts(world, signal) };
    } else if (winner.by === "commit") {
      if (winner.event === undefined) return;
      commit = nextCommit();
      const what = foreignCommit(winner.event, options);
      if (what === undefined) continue;
      if (await tool.hasCanary(signal)) suspect ??= { what, dueMs: world.clock.nowMs() + patience(options) };
      else yield { kind: "drift", what };
    } else if (suspect !== undefined && suspect.dueMs <= world.clock.nowMs()) {
      yield { kind: "drift", what: suspect.what };
      suspect = undefined;
    } else {
      canaryMs = world.clock.nowMs() + CANARY_MS;
      if (!(await tool.hasCanary(signal)))
        yield { kind: "drift", what: "the canary chain is gone from table mangle: somebody flushed iptables" };
    }
  }
}

/** Say what somebody else did to the tables we share, if this event tells so. */
function foreignCommit(event: NftEvent, { family, own }: WatchOptions): string | undefined {
  if (event.kind === "lost") {
    own.start();
    return "the ruleset changed faster than the kernel could tell";
  }
  const ip = family === "IPv4" ? "ip" : "ip6";
  const touched = event.tables.filter((table) => ["nat", "filter", "mangle"].some((name) => table === `${ip} ${name}`));
  if (touched.length === 0 || own.take()) return undefined;
  return `${event.process} (pid ${event.pid}) changed table ${touched.join(", ")}`;
}

function patience({ lookMs }: WatchOptions): number {
  return Math.max(LOOK_MIN_MS, lookMs() / LOOK_SHARE);
}

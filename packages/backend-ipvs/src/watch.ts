import type { HostEvent, IPFamily } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { EchoCount, NftEvent, SignChanges, SignWatch } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import type { IpvsFacts } from "./options.ts";
import { readFacts } from "./probe.ts";
import { explainCommit, explainSigns } from "./signs.ts";
import type { BoundCount } from "./signs.ts";
import type { IpvsWorld } from "./world.ts";

/** What watching needs. */
export interface WatchOptions {
  readonly world: IpvsWorld;
  readonly family: IPFamily;
  readonly tool: Pick<IptablesTool, "choice">;
  readonly echoes: EchoCount;
  readonly signs: Pick<SignWatch, "follow">;
  readonly bound: BoundCount;
}

/** What there is to hear of; neither: addresses. */
interface News {
  readonly commit?: NftEvent;
  readonly changes?: SignChanges;
}

/** Tell of the host's addresses, as they are now and when they change, and of what others do to what is ours. */
export async function* watchHost(
  { world, family, tool, echoes, signs, bound }: WatchOptions,
  signal: AbortSignal,
): AsyncIterable<HostEvent<IpvsFacts>> {
  const { netlink, clock } = world;
  const isNft = (await tool.choice(signal)).variant === "nft";
  const inbox = new Inbox<News>(clock, signal);
  inbox.follow(netlink.watchAddresses(signal), () => {
    bound.forget();
    return {};
  });
  bound.forget();
  if (isNft) inbox.follow(netlink.watchNft(signal), (commit) => ({ commit }));
  inbox.follow(signs.follow(signal), (changes) => ({ changes }));
  echoes.start();
  // What changed since the probe is told, too.
  yield { kind: "facts", facts: await readFacts(world) };
  for (let news = await inbox.next(); news !== "end" && news !== "due"; news = await inbox.next()) {
    if (news.changes !== undefined) yield { kind: "drift", what: explainSigns(news.changes) };
    else if (news.commit === undefined) yield { kind: "facts", facts: await readFacts(world) };
    else {
      const what = explainCommit(news.commit, family);
      const isLost = news.commit.kind === "lost";
      if (isLost) echoes.start(clock.nowMs());
      if (what !== undefined && (isLost || echoes.hear(clock.nowMs()) !== "ours")) yield { kind: "drift", what };
    }
  }
}

import type { HostEvent, IPFamily, World } from "@turnout/core";
import { NFT_FAMILY, TABLE } from "./names.ts";
import type { NftFacts } from "./options.ts";
import type { EchoCount } from "./nft-session.ts";
import { readFacts } from "./probe.ts";

/**
 * Tell of changed host addresses and of commits to our table by anybody else.
 *
 * Edges: when the kernel could not tell everything, counting starts anew and nothing is claimed.
 */
export async function* watchHost(
  world: Pick<World, "netlink">,
  family: IPFamily,
  echoes: EchoCount,
  signal: AbortSignal,
): AsyncIterable<HostEvent<NftFacts>> {
  const table = `${NFT_FAMILY[family]} ${TABLE}`;
  const commits = world.netlink.watchNft(signal)[Symbol.asyncIterator]();
  const addresses = world.netlink.watchAddresses(signal)[Symbol.asyncIterator]();
  echoes.start();
  let nextCommit = commits.next();
  let nextAddresses = addresses.next();
  for (;;) {
    const winner = await Promise.race([
      nextCommit.then((result) => ({ commit: result })),
      nextAddresses.then((result) => ({ addresses: result })),
    ]);
    if ("commit" in winner) {
      if (winner.commit.done === true) return;
      const event = winner.commit.value;
      nextCommit = commits.next();
      if (event.kind === "lost") echoes.start();
      else if (event.tables.includes(table) && !echoes.take()) {
        yield { kind: "drift", what: `${event.process} (pid ${event.pid}) changed table ${table}` };
      }
    } else {
      if (winner.addresses.done === true) return;
      nextAddresses = addresses.next();
      yield { kind: "facts", facts: await readFacts(world) };
    }
  }
}

import type { HostEvent, World } from "@turnout/core";
import { readAddresses } from "./facts.ts";
import type { UserspaceFacts } from "./render.ts";

/** Somebody who is told when something is no longer as we made it. */
export class DriftBell {
  #waiting = Promise.withResolvers<string>();

  /** Tell what is wrong. */
  ring(what: string): void {
    this.#waiting.resolve(what);
  }

  /** Wait for the next; what was rung before nobody waited counts. */
  async heard(): Promise<string> {
    const what = await this.#waiting.promise;
    this.#waiting = Promise.withResolvers();
    return what;
  }
}

/** What watching needs. */
export interface WatchOptions {
  readonly world: Pick<World, "netlink">;
  readonly canOwnAddresses: () => Promise<boolean>;
  readonly bell: DriftBell;
  /** Whether an address of ours is missing, or one too many. */
  readonly isDisturbed: () => Promise<boolean>;
}

/** Tell of changed host addresses, of addresses of ours that somebody touched, and of listeners that failed. Ends on abort. */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<UserspaceFacts>> {
  const { world, bell, isDisturbed, canOwnAddresses } = options;
  const addresses = addressChanges(world, signal)[Symbol.asyncIterator]();
  let nextChange = addresses.next();
  let nextRing = bell.heard();
  let known = JSON.stringify(await readAddresses(world));
  for (;;) {
    const winner = await Promise.race([nextChange.then((result) => ({ result })), nextRing]);
    if (typeof winner === "string") {
      nextRing = bell.heard();
      yield { kind: "drift", what: winner };
      continue;
    }
    if (winner.result.done === true) return;
    nextChange = addresses.next();
    const now = await readAddresses(world);
    // Our own addresses come and go with services: those are no facts.
    if (JSON.stringify(now) !== known) {
      known = JSON.stringify(now);
      yield { kind: "facts", facts: { addresses: now, canOwnAddresses: await canOwnAddresses() } };
    }
    if (await isDisturbed()) yield { kind: "drift", what: "addresses of ours were changed" };
  }
}

/** Without netlink nobody tells of changes: then there are none until the next start. */
function addressChanges({ netlink }: Pick<World, "netlink">, signal: AbortSignal): AsyncIterable<void> {
  return process.platform === "linux" ? netlink.watchAddresses(signal) : untilAborted(signal);
}

// eslint-disable-next-line require-yield
async function* untilAborted(signal: AbortSignal): AsyncIterable<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

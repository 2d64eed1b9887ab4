import { isEqual } from "@turnout/core";
import type { HostEvent } from "@turnout/core/backend";
import { Inbox } from "@turnout/host";
import type { HostAddresses, LinuxWorld } from "@turnout/host";
import { readAddresses } from "./facts.ts";
import { OWN_DEVICE } from "./objects.ts";
import type { UserspaceFacts } from "./render.ts";

/** Somebody who is told when something is no longer as we made it. Rung several times before anybody looks, it is rung once. */
export class DriftBell {
  #unheard: string | undefined;
  #onRing: () => void = () => undefined;

  /** Tell what is wrong. */
  ring(what: string): void {
    const isNew = this.#unheard === undefined;
    this.#unheard ??= what;
    if (isNew) this.#onRing();
  }

  /** Be called when it is rung; what was rung while nobody listened counts. The last who asks is the one who is called. */
  listen(onRing: () => void): void {
    this.#onRing = onRing;
    if (this.#unheard !== undefined) onRing();
  }

  /** What is wrong, told once; undefined: nothing new. */
  drain(): string | undefined {
    const what = this.#unheard;
    this.#unheard = undefined;
    return what;
  }
}

/** What watching needs. */
export interface WatchOptions {
  readonly world: Pick<LinuxWorld, "netlink" | "clock">;
  readonly canOwnAddresses: () => Promise<boolean>;
  readonly bell: DriftBell;
  /** Whether an address of ours is missing, or one too many. */
  readonly isDisturbed: () => Promise<boolean>;
}

/**
 * Tell of the host's addresses, as they are now and when they change, of addresses of ours that somebody touched, and of listeners that failed. Ends
 * on abort.
 */
export async function* watchHost(options: WatchOptions, signal: AbortSignal): AsyncIterable<HostEvent<UserspaceFacts>> {
  const { world, bell, isDisturbed, canOwnAddresses } = options;
  const inbox = new Inbox<{ readonly is: "addresses" | "rung" }>(world.clock, signal);
  inbox.follow(addressChanges(world, signal), () => ({ is: "addresses" }));
  bell.listen(() => inbox.put({ is: "rung" }));
  const factsOf = async (addresses: HostAddresses): Promise<UserspaceFacts> => ({ addresses, canOwnAddresses: await canOwnAddresses() });
  let known = await readAddresses(world);
  yield { kind: "facts", facts: await factsOf(known) };
  for (let news = await inbox.next(); typeof news !== "string"; news = await inbox.next()) {
    if (news.is === "rung") {
      const what = bell.drain();
      if (what !== undefined) yield { kind: "drift", what };
      continue;
    }
    const now = await readAddresses(world);
    // Our own addresses come and go with services: those are no facts.
    if (!isEqual(now, known)) {
      known = now;
      yield { kind: "facts", facts: await factsOf(now) };
    }
    if (await isDisturbed()) yield { kind: "drift", what: ADDRESSES_CHANGED };
  }
}

const ADDRESSES_CHANGED = `addresses on ${OWN_DEVICE} were changed; the kernel does not tell by whom`;

/** Without netlink nobody tells of changes: then there are none until the next start. */
function addressChanges({ netlink }: Pick<LinuxWorld, "netlink">, signal: AbortSignal): AsyncIterable<void> {
  return process.platform === "linux" ? netlink.watchAddresses(signal) : untilAborted(signal);
}

// eslint-disable-next-line require-yield
async function* untilAborted(signal: AbortSignal): AsyncIterable<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

import { systemClock } from "@turnout/core/process";
import type { Log, World } from "@turnout/core";
import { createExec } from "./exec/exec.ts";
import { createNetlink } from "./netlink/netlink.ts";
import type { Netlink } from "./netlink/netlink.ts";

/** What a backend on Linux touches. */
export interface LinuxWorld extends World {
  readonly netlink: Netlink;
}

/** Make the real {@link World}: this machine's programs and time. Touches nothing yet. */
export function createWorld({ log }: { readonly log: Log }): World {
  return { exec: createExec(), clock: systemClock(), log };
}

/** Add the kernel of this network namespace: `createWorld` of a backend on Linux. Touches nothing yet. */
export function createLinuxWorld(base: World): LinuxWorld & { close(): void } {
  const netlink = createNetlink({ clock: base.clock });
  return { ...base, netlink, close: () => netlink.close() };
}

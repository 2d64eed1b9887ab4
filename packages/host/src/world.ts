import { systemClock } from "@turnout/core/process";
import type { Log, World } from "@turnout/core";
import { createExec } from "./exec/exec.ts";
import { createNetlink } from "./netlink/netlink.ts";
import type { HostNetlink } from "./netlink/netlink.ts";

/** A {@link World} whose netlink can watch as well. */
export interface HostWorld extends World {
  readonly netlink: HostNetlink;
}

/** Make the real {@link World}: this machine's programs, kernel and time. Touches nothing yet. */
export function createWorld(options: { readonly log: Log }): HostWorld {
  const clock = systemClock();
  return { exec: createExec(), netlink: createNetlink({ clock }), clock, log: options.log };
}

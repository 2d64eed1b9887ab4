import { execFileSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { loadLibc } from "../netlink/libc.ts";

// @source linux/sched.h CLONE_NEWNS, CLONE_NEWNET
const MOUNTS = 0x0002_0000;
const NETWORK = 0x4000_0000;

/**
 * Give each test of a `describe` a network namespace of its own, in this process and in what it starts; and `withMounts` one of mounts.
 *
 * Edges: of this thread. What runs in libuv's threads, such as reading files by promises, stays where it was, but for what is below /proc/self.
 * The namespace of mounts stays with the process: Vitest has one for each file.
 */
export function inOwnNamespaces({ withMounts = false }: { readonly withMounts?: boolean } = {}): void {
  let home = -1;
  const call = (signature: string, ...args: readonly number[]): void => {
    const { koffi, libc } = loadLibc();
    const result = (libc.func(signature) as (...all: readonly number[]) => number)(...args);
    if (result !== 0) throw new Error(`${signature}: error ${koffi.errno()}`);
  };
  beforeAll(() => {
    home = openSync("/proc/thread-self/ns/net", "r");
  });
  beforeEach(() => {
    call("int unshare(int kinds)", NETWORK | (withMounts ? MOUNTS : 0));
    // As the program unshare does; otherwise the host sees what is mounted.
    if (withMounts) execFileSync("mount", ["--make-rprivate", "/"]);
  });
  afterAll(() => {
    if (home < 0) return;
    call("int setns(int fd, int kind)", home, NETWORK);
    closeSync(home);
  });
}

import { readdirSync, readFileSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import { kernelError } from "../netlink/errno.ts";
import { loadLibc } from "../netlink/libc.ts";
import { bitsOf, namesOf, parseCapabilities, placesOf } from "./linux-capabilities.ts";

/** What this process may do, as Linux capabilities, and the way to give some of them up. */
export interface ProcessRights {
  /** Names of what this process has, e.g. `CAP_NET_ADMIN`. */
  held(): readonly string[];
  /**
   * Run `look` with all that is held but some; what it throws is passed on.
   *
   * Shape: `look` does all it does before it returns: no promises.
   */
  without<T>(names: readonly string[], look: () => T): T;
  /**
   * Give up everything but these, for good.
   *
   * Shape: `process` is for what this process does itself, `children` for the programs that it starts from now on; none of them gets a capability by
   * being set-user-ID or having one in its file.
   * Edges: the kernel keeps capabilities by thread. The main thread, those that Node reads files and looks up names in, and all children are covered;
   * threads of V8 and of the inspector are not. What isn't held isn't gained.
   * @throws {ProxyError} `host_unsupported` without glibc or koffi; `permission_denied`, `tool_failed` when the kernel refuses.
   */
  keep(process: readonly string[], children: readonly string[]): Promise<void>;
}

/** @source linux/capability.h _LINUX_CAPABILITY_VERSION_3 */
const VERSION = 0x2008_0522;
/** @source linux/prctl.h */
const PR_CAPBSET_DROP = 24;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_RAISE = 2;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;

/** Threads of libuv's pool, as they are called in /proc. */
const POOL_THREAD = "libuv-worker";
/** A round reaches most threads of the pool; the rest is bound to be free sooner or later. */
const ROUNDS = 200;
const CALLS_PER_ROUND = 16;
const BUSY_MICROSECONDS = 500;

interface Calls {
  capset(bits: Pick<Bits, "effective" | "permitted" | "inheritable">): void;
  /** The same, on some thread of libuv's pool. */
  capsetInPool(bits: Pick<Bits, "effective" | "permitted" | "inheritable">): Promise<void>;
  /** Keeps a thread of the pool busy, so that the next call goes to another. */
  pauseInPool(): Promise<void>;
  prctl(option: number, second: number, third: number): void;
}

interface Bits {
  readonly effective: bigint;
  readonly permitted: bigint;
  readonly inheritable: bigint;
}

/** The rights of this process. Touches nothing yet. */
export function createProcessRights(): ProcessRights {
  return {
    held: () => namesOf(ownCapabilities().permitted),
    without(names, look) {
      const { capset } = loadCalls();
      const { effective, permitted, inheritable } = ownCapabilities();
      capset({ effective: effective & ~bitsOf(names), permitted, inheritable });
      try {
        return look();
      } finally {
        capset({ effective, permitted, inheritable });
      }
    },
    keep,
  };
}

function ownCapabilities(): ReturnType<typeof parseCapabilities> {
  return parseCapabilities(readFileSync("/proc/thread-self/status", "utf8"));
}

async function keep(process: readonly string[], children: readonly string[]): Promise<void> {
  const calls = loadCalls();
  const before = ownCapabilities();
  const permitted = before.permitted & bitsOf(process);
  const forChildren = permitted & bitsOf(children);
  calls.prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
  // Programs that root starts have all of the bounding set, and no more than this process where that can't be made smaller.
  if ((before.effective & bitsOf(["CAP_SETPCAP"])) !== 0n)
    for (const at of placesOf(before.bounding & ~forChildren)) calls.prctl(PR_CAPBSET_DROP, at, 0);
  const isRoot = globalThis.process.geteuid?.() === 0;
  const after = { effective: permitted, permitted, inheritable: isRoot ? before.inheritable & forChildren : forChildren };
  calls.capset(after);
  // Programs that anybody else starts have what is ambient.
  if (!isRoot) {
    calls.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0);
    for (const at of placesOf(forChildren)) calls.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, at);
  }
  await keepInPool(calls, after);
}

/** Threads of the pool that are made later have what the main thread has then. */
async function keepInPool({ capsetInPool, pauseInPool }: Calls, bits: Bits): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    if (!poolCapabilities().some(({ effective, permitted }) => ((effective | permitted) & ~bits.permitted) !== 0n)) return;
    await Promise.all(Array.from({ length: CALLS_PER_ROUND }, (_, at) => (at % 2 === 0 ? capsetInPool(bits) : pauseInPool())));
  }
  throw new ProxyError("tool_failed", "a thread of this process keeps its capabilities", { object: POOL_THREAD });
}

function poolCapabilities(): readonly ReturnType<typeof parseCapabilities>[] {
  return readdirSync("/proc/self/task").flatMap((thread) => {
    const status = readFileSync(`/proc/self/task/${thread}/status`, "utf8");
    return status.startsWith(`Name:\t${POOL_THREAD}\n`) ? [parseCapabilities(status)] : [];
  });
}

let loaded: Calls | undefined;

function loadCalls(): Calls {
  return (loaded ??= makeCalls());
}

function makeCalls(): Calls {
  const { koffi, libc } = loadLibc();
  const capset = libc.func("int capset(void *header, void *data)");
  const usleep = libc.func("int usleep(uint32_t microseconds)");
  const prctl = libc.func("int prctl(int option, uint64_t second, uint64_t third, uint64_t fourth, uint64_t fifth)") as (
    ...args: readonly number[]
  ) => number;
  const header = Uint32Array.of(VERSION, 0);
  const dataOf = ({ effective, permitted, inheritable }: Bits): Uint32Array =>
    Uint32Array.from(
      [0n, 32n].flatMap((shift) => [effective, permitted, inheritable].map((bits) => Number((bits >> shift) & 0xffff_ffffn))),
    );
  const inPool = (call: (done: (error: Error | null) => void) => void): Promise<void> =>
    new Promise((resolve, reject) => call((error) => (error === null ? resolve() : reject(error))));
  return {
    capset(bits) {
      if ((capset as (...args: readonly unknown[]) => number)(header, dataOf(bits)) !== 0)
        throw kernelError(koffi.errno(), "capabilities can't be given up");
    },
    // Whether it was done is read from /proc.
    capsetInPool: (bits) => inPool((done) => void capset.async(header, dataOf(bits), done)),
    pauseInPool: () => inPool((done) => void usleep.async(BUSY_MICROSECONDS, done)),
    prctl(option, second, third) {
      if (prctl(option, second, third, 0, 0) !== 0)
        throw kernelError(koffi.errno(), "capabilities can't be given up", { object: `prctl ${option}` });
    },
  };
}

import { TestClock } from "@turnout/core/testing";
import { createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import { createNftExec } from "@turnout/fakes/nft";
import { ROOT_CGROUP } from "../options.ts";
import { createEbpfWorld } from "../world.ts";
import type { EbpfWorld } from "../world.ts";

/** A world of fakes, where everything is there that a probe looks for, and nothing is pinned. */
export type FakeWorld = EbpfWorld & {
  readonly clock: TestClock;
  readonly log: ReturnType<typeof createFakeLog>;
  readonly netlink: ReturnType<typeof createFakeNetlink>;
};

/** Make one: of this machine it has the kernel's version alone. */
export function fakeWorld(): FakeWorld {
  const [clock, log] = [new TestClock(), createFakeLog()];
  const exec = createNftExec(() => ({ isDone: true, stderr: "", changed: [] }));
  return {
    ...createEbpfWorld({ exec, clock, log }),
    clock,
    log,
    netlink: createFakeNetlink(),
    probeBpf: () =>
      Promise.resolve({ libbpf: "1.1", bpffs: "/bpf", cgroup2: "/cgroup", missingHooks: [], missingKfuncs: [], missing: new Map() }),
    mounts: () => ({ bpffs: "/bpf", cgroup2: "/cgroup" }),
    namespaceCookie: (path) => (path === undefined ? "1" : "4096"),
    cgroupNumber: () => ROOT_CGROUP,
    namespaces: () => ["/proc/1/ns/net"],
  };
}

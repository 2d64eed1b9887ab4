// What a backend has of a stage in the kernel: the real tools, each called by a process of node1.
import { RecordingLog } from "@turnout/core/testing";
import { createWorld } from "@turnout/host";
import type { BpfProbe } from "@turnout/host/bpf";
import type { Machine } from "../../testing/machine.ts";
import { createEbpfWorld } from "../../world.ts";
import type { EbpfWorld } from "../../world.ts";
import type { KernelStage } from "./kernel-stage.ts";

/** The kernel stays what it is. */
let probed: Promise<BpfProbe> | undefined;

/** The machine's part of a world, with the programs of these files. */
export function kernelWorld(stage: KernelStage, objectFiles: Partial<EbpfWorld["objectFiles"]>): Machine["world"] & { close(): void } {
  const real = createEbpfWorld(createWorld({ log: new RecordingLog() }));
  return {
    ...calledAt(stage, real),
    bpf: calledAt(stage, stage.objects.bpf),
    netlink: calledAt(stage, real.netlink),
    objectFiles: { ...real.objectFiles, ...objectFiles },
    probeBpf: () => (probed ??= real.probeBpf()),
    mounts: () => ({ bpffs: stage.bpffs, cgroup2: stage.cgroup }),
    namespaces: () => stage.namespaces,
  };
}

/** The same tools, but for each call of a method this process enters the stage first. */
function calledAt<T extends object>(stage: KernelStage, tools: T): T {
  const called = Object.entries(tools).map(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [name, value] as const;
    const call = (...args: readonly unknown[]): unknown => {
      stage.enter();
      return Reflect.apply(value, tools, args);
    };
    return [name, call] as const;
  });
  return Object.fromEntries(called) as T;
}

// A proxy in a process of its own, which ends as by kill -9 at its n-th change of the kernel.
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceFixture } from "@turnout/core/testing";
import { Daemon } from "./daemon.ts";
import type { DaemonOptions } from "./daemon.ts";
import { mortalBpf } from "./mortal-bpf.ts";

/** What it is told, as JSON. */
export interface ChildOrder extends DaemonOptions {
  readonly changes: number;
  readonly fixtures: readonly ServiceFixture[];
}

const order = JSON.parse(process.argv[2] ?? "") as ChildOrder;
const daemon = await Daemon.start({ ...order, alterBpf: (bpf) => mortalBpf(bpf, order.changes) });
await daemon.want(order.fixtures);
// Lists go a second later.
await sleep(1200);
await daemon.settled();
await daemon.stop();
process.exit(0);

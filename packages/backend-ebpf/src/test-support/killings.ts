// Proxies in processes of their own that are killed at one change of the kernel after another.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceFixture } from "@turnout/core/testing";
import { failingBpf } from "../testing/failing-bpf.ts";
import { Daemon } from "./daemon.ts";
import type { DaemonOptions } from "./daemon.ts";
import { bpf, elements, pinned, ROOT } from "./module-scene.ts";
import { CHILD } from "./stage.ts";

/** What a proxy in a process of its own is told, as JSON. */
interface ChildOrder extends DaemonOptions {
  /** It ends as by kill -9 at so many changes of the kernel, just before the last; of many elements half are changed. */
  readonly changes: number;
  readonly fixtures: readonly ServiceFixture[];
}

/** Where proxies run. */
export type Place = Pick<ChildOrder, "cgroup" | "objectFile">;

/** A service of one endpoint. */
export const PLAIN: ServiceFixture = { name: "plain", number: 1, local: 1 };

/** One of UDP. */
export const UDP: ServiceFixture = { name: "udp", number: 2, protocol: "UDP", local: 1, remote: 1 };

/** Services of which each is in several chunks of a plan, and two that are asked all the time. */
export const MANY: readonly ServiceFixture[] = [
  PLAIN,
  UDP,
  ...Array.from({ length: 40 }, (_, index) => ({ name: `many-${index}`, number: 100 + index, local: 2, remote: (index % 5) + 1 })),
];
/** The same with other endpoints; some services go, some come. The two that are asked keep an endpoint. */
export const CHANGED: readonly ServiceFixture[] = [
  { ...PLAIN, local: 2 },
  { ...UDP, remote: 0 },
  ...Array.from({ length: 40 }, (_, index) => ({ name: `many-${index + 10}`, number: 110 + index, local: 1, remote: (index % 4) + 1 })),
];
/** At which change of the kernel each process is killed. */
export const STEPS: readonly number[] = [1, 2, 3, 4, 6, 8, 10, 13, 16, 20];

/** Run a proxy in a process of its own; true: it was killed. */
async function runChild(place: Place, order: Omit<ChildOrder, keyof Place>): Promise<boolean> {
  const all: ChildOrder = { ...place, ...order };
  const child = spawn(
    process.execPath,
    ["--conditions=@turnout/source", "--no-warnings", CHILD, JSON.stringify(all), "killings", "proxy"],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  const [code, killedBy] = (await once(child, "exit")) as [number | null, string | null];
  if (killedBy === null && code !== 0) throw new Error(`a proxy ended with ${String(code)}`);
  return killedBy === "SIGKILL";
}

/** Run a proxy in a process of its own until everything is in force. */
export async function runToEnd(place: Place, fixtures: readonly ServiceFixture[], options: ChildOrder["options"] = {}): Promise<void> {
  await runChild(place, { fixtures, options, changes: Number.MAX_SAFE_INTEGER });
}

/** Have a proxy killed at one change of the kernel after another, each time by a new process, until one outlives it. */
export async function killings(
  place: Place,
  fixtures: readonly ServiceFixture[],
  steps: readonly number[],
  options: ChildOrder["options"] = {},
): Promise<object> {
  let killed = 0;
  for (const changes of steps) killed += (await runChild(place, { fixtures, options, changes })) ? 1 : 0;
  await runToEnd(place, fixtures, options);
  return { isKilledOften: killed >= 4 };
}

/** Whether the host is as if nothing had ever been there before. */
export async function endsAs(place: Place, fixtures: readonly ServiceFixture[], options: ChildOrder["options"] = {}): Promise<object> {
  const maps = ["services", "endpoints", "source_ranges", "node_addresses", "pod_ranges", "primaries", "settings", "opted_out"];
  const state = async (): Promise<string> =>
    JSON.stringify([pinned(), await Promise.all(maps.map(elements)), (await elements("counters")).map((text) => text.slice(0, 16))]);
  const seen = await state();
  bpf.removePins(ROOT);
  await runToEnd(place, fixtures, options);
  return { isAsNew: seen === (await state()) };
}

/** The proxy of {@link runToEnd} and {@link killings}, in the process of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async proxy() {
    const order = JSON.parse(process.argv[2] ?? "") as ChildOrder;
    let left = order.changes;
    const failures = {
      next: () => ((left -= 1) > 0 ? undefined : ("during" as const)),
      isRefused: () => false,
      failed: () => void process.kill(process.pid, "SIGKILL"),
    };
    const daemon = await Daemon.start({ ...order, alter: (world) => ({ ...world, bpf: failingBpf(world.bpf, failures) }) });
    await daemon.want(order.fixtures);
    // Lists go a second later.
    await sleep(1200);
    await daemon.settled();
    await daemon.stop();
    return {};
  },
};

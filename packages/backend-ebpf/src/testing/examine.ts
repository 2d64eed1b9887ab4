import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mergeReports } from "@turnout/conformance";
import type { Examination, Examine, Scenario } from "@turnout/conformance";
import { abilitiesOf } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import { createWorld, isAtLeast, probeHost } from "@turnout/host";
import { createFakeLog } from "@turnout/host/testing";
import { ebpfModule } from "../module.ts";
import { createEbpfWorld } from "../world.ts";
import type { KitOrder } from "./kit-order.ts";
import { ownCgroup } from "./namespaces.ts";
import { runKit } from "./run-kit.ts";

/** Scenarios are dealt to so many processes, which play at once: attaching programs is mostly waiting for the kernel. */
const PARTS = 6;
/** Changes on one host; a life has the seed of the first one plus its number, so it can be played again by itself. */
const LIFE_STEPS = 500;
/** Routes tell the source address of what is masqueraded. */
const KERNEL = "6.7";
const TOOLS: Readonly<Record<string, readonly string[]>> = { unshare: ["--version"], ip: ["-V"], nft: ["--version"] };

/**
 * Play the conformance kit on this machine's kernel, in network namespaces, a cgroup and a bpffs of its own that are gone afterwards.
 * @throws {Error} what kept a part from being played.
 */
export const examine: Examine = async (examination) => {
  const leftOut = await whyLeftOut();
  if (leftOut !== undefined) return { leftOut };
  const { backendOptions, signal } = examination;
  const orders = ordersOf(examination).map((part): KitOrder => ({ part, backendOptions }));
  const results = await Promise.all(orders.map((order) => runKit(order, signal)));
  const abilities = results.find((one) => one.abilities !== undefined)?.abilities ?? abilitiesOf(ebpfModule);
  return mergeReports({ backend: ebpfModule.name, abilities, findings: [], cells: [], notAsked: [] }, results);
};

/** Why this machine can't play the kit; undefined: it can. */
export async function whyLeftOut(): Promise<string | undefined> {
  const { kernel, isRoot } = await probeHost();
  if (!isRoot) return "it is played in this machine's kernel, which needs root";
  if (!isAtLeast(kernel, KERNEL))
    return `it is played in this machine's kernel, which has to be Linux ${KERNEL} or newer: it is ${kernel.text}`;
  const missing = Object.entries(TOOLS).find(([file, args]) => !isInstalled(file, args));
  if (missing !== undefined) return `it is played in this machine's kernel, which needs ${missing[0]}`;
  const world = createEbpfWorld(createWorld({ log: createFakeLog() }));
  try {
    const unbuilt = Object.values(world.objectFiles).find((path) => !existsSync(path));
    if (unbuilt !== undefined) return `its programs are not built: there is no ${unbuilt}`;
    ownCgroup();
    const { missing: features } = await world.probeBpf();
    // The kit mounts a bpffs of its own.
    return [...features].find(([feature]) => feature !== "bpffs")?.[1].message;
  } catch (error) {
    if (ProxyError.is(error)) return error.message;
    throw error;
  } finally {
    world.close();
  }
}

function isInstalled(file: string, args: readonly string[]): boolean {
  try {
    execFileSync(file, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function ordersOf({ scenarios, histories }: Examination): readonly KitOrder["part"][] {
  const names = (index: number): readonly string[] => scenarios.filter((_, at) => at % PARTS === index).map(({ name }: Scenario) => name);
  const parts = Array.from({ length: PARTS }, (_, index) => ({ kind: "scenarios" as const, names: names(index) }));
  return [
    { kind: "checks" },
    ...parts.filter((part) => part.names.length > 0),
    ...(histories === undefined ? [] : [{ kind: "histories" as const, lifeSteps: LIFE_STEPS, ...histories }]),
  ];
}

import { needs } from "@turnout/house/needs";
import { isFullRun, someOf } from "@turnout/house/some-of";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultsOf, healthyCases, healthyVariants } from "./faults/cases.ts";
import { runFault, runHealthy } from "./faults/run-fault.ts";
import { createFaultStage } from "./faults/stage.ts";
import type { FaultStage } from "./faults/stage.ts";

/** Of one test, on a machine that has much else to do. */
const TIMEOUT_MS = 300_000;

/** A share of the corpus that `npm run e2e:faults` plays: each costs half a second of CPU. */
describe("turnout why", { ...needs("root", "ip", "conntrack", "nft>=1.0.1", "iptables>=1.8.0", "ipset"), timeout: TIMEOUT_MS }, () => {
  let stage: FaultStage;
  beforeAll(async () => {
    stage = await createFaultStage("nft");
  }, TIMEOUT_MS);
  afterAll(() => stage?.destroy());

  it("blames nothing where packets arrive, whatever else is there", async () => {
    const variants = isFullRun() ? healthyVariants("nft") : healthyVariants("nft").slice(1, 2);
    for (const variant of variants) {
      const verdicts = await runHealthy(stage, variant, someOf(healthyCases(stage), { oneOf: 9 }));
      expect(verdicts.filter(({ isRight }) => !isRight)).toEqual([]);
    }
  });

  it("names what was broken", async () => {
    const ran = [];
    for (const fault of someOf(faultsOf(stage), { oneOf: 9 })) ran.push(await runFault(stage, fault));
    expect(ran.filter(({ isRight }) => !isRight)).toEqual([]);
  });
});

/** What somebody did to their own objects; all else is the same for every backend. */
describe.each(["iptables", "ebpf"])("turnout why, %s", (backend) => {
  const bpf = backend === "ebpf" ? (["bpf", "cgroup2", "nsenter", "unshare"] as const) : [];
  const tools = { ...needs("root", "ip", "conntrack", "nft>=1.0.1", "iptables-nft>=1.8.0", ...bpf), timeout: TIMEOUT_MS };

  it("names what was changed in the kernel", tools, async () => {
    const stage = await createFaultStage(backend);
    try {
      const ran = [];
      const faults = faultsOf(stage).filter(({ kind }) => kind === "kernel");
      for (const fault of someOf(faults, { oneOf: 9 })) ran.push(await runFault(stage, fault));
      expect(ran.filter(({ isRight }) => !isRight)).toEqual([]);
    } finally {
      await stage.destroy();
    }
  });
});

/** Where a process answers nothing is forwarded, so other rules decide. */
describe("turnout why, userspace", () => {
  const tools = { ...needs("root", "ip", "conntrack", "nft>=1.0.1", "iptables-nft>=1.8.0"), timeout: TIMEOUT_MS };

  it("names what keeps packets from its process, or from the endpoint", tools, async () => {
    const stage = await createFaultStage("userspace");
    try {
      const ran = [];
      const faults = faultsOf(stage).filter(({ name }) => name.startsWith("userspace:"));
      for (const fault of someOf(faults, { oneOf: 5 })) ran.push(await runFault(stage, fault));
      expect(ran.filter(({ isRight }) => !isRight)).toEqual([]);
    } finally {
      await stage.destroy();
    }
  });
});

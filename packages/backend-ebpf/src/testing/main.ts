// Run by play.ts in namespaces and a cgroup of its own: plays a part of the conformance kit on this kernel, and prints what it found as JSON.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { checkBackend, checkHistories, checkScenarios, describeBackend, SCENARIOS } from "@turnout/conformance";
import type { ConformanceReport } from "@turnout/conformance";
import { ebpfModule } from "../module.ts";
import { KernelHosts } from "./kernel-hosts.ts";
import type { KitOrder, KitResult } from "./kit-order.ts";

const [, , cgroup = "", text = ""] = process.argv;
const order = JSON.parse(text) as KitOrder;

/** Small maps, which are looked through often; the largest scenario has 4,000 ports. */
const SMALL: Parameters<typeof ebpfModule.parseOptions>[0] = {
  "max-services": 8192,
  "max-endpoints": 8192,
  "max-ranges": 1024,
  "max-affinity": 1024,
  "max-sockets": 1024,
};
const module: typeof ebpfModule = { ...ebpfModule, parseOptions: (raw) => ebpfModule.parseOptions({ ...SMALL, ...raw }) };

execFileSync("mount", ["-t", "tmpfs", "none", "/run"]);
for (const folder of ["/run/netns", "/run/stages"]) mkdirSync(folder);
const hosts = await KernelHosts.open({ cgroup, folder: "/run/stages" }, order.objectFiles ?? {});
const result: KitResult = { cells: [], notAsked: [], ...(await runPart(order)), packets: hosts.packets };
hosts.close();
process.stdout.write(JSON.stringify(result), () => process.exit(0));

async function runPart({
  part,
  backendOptions = {},
  maxFindings,
}: KitOrder): Promise<Partial<ConformanceReport> & Pick<KitResult, "findings">> {
  const createFakeHost = (): ReturnType<KernelHosts["create"]> => hosts.create();
  const options = { backendOptions, ...(maxFindings === undefined ? {} : { maxFindings }) };
  switch (part.kind) {
    case "checks":
      return await checkBackend(module, createFakeHost, [], options);
    case "scenarios": {
      const scenarios = SCENARIOS.filter(({ name }) => part.names.includes(name));
      return await checkScenarios({ module, createFakeHost }, scenarios, options);
    }
    case "histories":
      return await checkHistories(module, createFakeHost, { ...options, ...part });
    case "test": {
      const tests = new Map<string, () => Promise<void>>();
      describeBackend(module, createFakeHost, { it: (name, run) => tests.set(name, run) });
      const run = tests.get(part.name);
      if (run === undefined) throw new Error(`no test has this name: ${part.name}`);
      await run();
      return { findings: [] };
    }
  }
}

// Run by kernel-conformance.test.ts in namespaces and a cgroup of its own: plays scenarios of the conformance kit on this kernel; prints what it found as JSON.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { basename } from "node:path";
import { checkScenarios, SCENARIOS } from "@turnout/conformance";
import { ebpfModule } from "../module.ts";
import { KernelHost } from "./kernel/kernel-host.ts";
import { KernelStages } from "./kernel/kernel-stages.ts";
import type { RunResult } from "./kernel/run-result.ts";

const [, , which = "", cgroup = "", objectFile = ""] = process.argv;

/** Small maps, which are looked through often; the largest scenario has 4,000 ports. */
const backendOptions = { "max-services": 8192, "max-endpoints": 8192, "max-ranges": 1024, "max-affinity": 1024, "max-sockets": 1024 };

/** `1/3`: the first of three parts, of which all is told; otherwise what is in the names of scenarios, played up to the first finding. */
function chosen(): { readonly scenarios: typeof SCENARIOS; readonly maxFindings?: number } {
  const [part, parts] = which.split("/").map(Number);
  if (part === undefined || parts === undefined) return { scenarios: SCENARIOS.filter(({ name }) => name.includes(which)), maxFindings: 1 };
  return { scenarios: SCENARIOS.filter((_, index) => index % parts === part - 1) };
}

execFileSync("mount", ["-t", "tmpfs", "none", "/run"]);
for (const folder of ["/run/netns", "/run/stages"]) mkdirSync(folder);
// All programs as they were built, but for those of this file.
const objectFiles = { [basename(objectFile, ".bpf.o")]: objectFile };
const stages = new KernelStages({ cgroup, folder: "/run/stages" }, objectFiles);
const { scenarios, ...limit } = chosen();
const report = await checkScenarios({ module: ebpfModule, createFakeHost: () => new KernelHost(stages) }, scenarios, {
  backendOptions,
  ...limit,
});
const ran: RunResult = {
  scenarios: scenarios.map((scenario) => scenario.name),
  hosts: stages.counts.machines,
  packets: stages.counts.packets,
  findings: report.findings,
  skipped: [...new Set(report.cells.flatMap(({ skipped }) => skipped ?? []))],
};
stages.close();
process.stdout.write(JSON.stringify(ran));
process.exit(0);

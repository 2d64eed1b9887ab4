import { parseArgs } from "node:util";
import { oneOf, runCommand } from "@turnout/house/command-line";
import { runAgainInVm } from "@turnout/house/vm";
import { faultsOf, healthyVariants } from "./cases.ts";
import { runFault, runHealthy, verdictTable } from "./run-fault.ts";
import type { Verdict } from "./run-fault.ts";
import { createFaultStage, VM_BACKEND } from "./stage.ts";

const RAN = ["nft", "iptables", "iptables-legacy", "ebpf", "userspace", VM_BACKEND];

/**
 * Play the whole corpus of faults with one backend, and print what was named: `npm run e2e:faults -- nft [text]`. With a text, only faults with it
 * in their names, or of that kind, are played, and no healthy cases (`healthy`: nothing else). With ipvs it is played in a guest; `iptables-legacy`
 * is iptables with legacy tools.
 */
async function runHere(name: string, only: string): Promise<boolean> {
  const stage = await createFaultStage(name);
  const verdicts: Verdict[] = [];
  const notify = (verdict: Verdict): void => {
    verdicts.push(verdict);
    if (!verdict.isRight || only !== "")
      process.stderr.write(
        `${verdict.isRight ? "right" : "WRONG"} ${verdict.kind}: ${verdict.name}: ${verdict.found}${verdict.isRight ? "" : ` instead of ${verdict.expected}`}: ${verdict.says}\n`,
      );
  };
  try {
    if (["", "healthy"].includes(only))
      for (const variant of healthyVariants(stage.backend)) for (const verdict of await runHealthy(stage, variant)) notify(verdict);
    for (const fault of faultsOf(stage)) if (fault.name.includes(only) || fault.kind === only) notify(await runFault(stage, fault));
  } finally {
    process.stdout.write(verdictTable(verdicts));
    await stage.destroy();
  }
  return verdicts.every(({ isRight }) => isRight);
}

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { "in-vm": { type: "boolean", default: false } },
  });
  const [backend = "nft", only = "", ...more] = positionals;
  if (more.length > 0) throw new RangeError("say one backend, and one text");
  return { backend: oneOf("backend", backend, RAN), only, isInVm: values["in-vm"] };
}

await runCommand({
  name: "e2e:faults",
  usage: `npm run e2e:faults -- [BACKEND [TEXT]]\n  Break a node, and see whether turnout why names each fault; only those with the text in their name, or of that kind. Needs root.\n  backends: ${RAN.join(", ")} (default nft)`,
  read: asked,
  execute: async ({ backend, only, isInVm }) => (backend === VM_BACKEND && !isInVm ? await runAgainInVm() : await runHere(backend, only)),
});

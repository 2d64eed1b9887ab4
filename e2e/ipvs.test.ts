import { describeVm, IPVS_MODULES, nodeCommand } from "@turnout/house/vm";
import { leftOut, needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { castInWords, castsOf } from "./conformance-casting.ts";
import { fakeOnlyScenarios, ipvsChecks } from "./ipvs-checks.ts";
import { ipvsModule } from "@turnout/backend-ipvs";

/** Of the whole guest; the full run takes the most of it. */
const TIMEOUT_MS = 7_200_000;
/** A process of Node for each place of the cluster. */
const MEMORY_MIB = 2_048;
const TOOLS = ["ipvsadm", "ipset", "iptables-legacy", "ip", "conntrack", "sysctl"];

describe("ipvs over real packets in a guest", needs("uml", ...TOOLS), () => {
  describeVm({
    it,
    names: Object.keys(ipvsChecks().checks),
    command: nodeCommand(new URL("./ipvs-vm.ts", import.meta.url), [], "built"),
    modules: IPVS_MODULES,
    memoryMiB: MEMORY_MIB,
    timeoutMs: TIMEOUT_MS,
    // What is played is chosen by it on both sides.
    env: { TURNOUT_TESTS: process.env["TURNOUT_TESTS"] ?? "", TURNOUT_SHARE: process.env["TURNOUT_SHARE"] ?? "" },
  });

  for (const scenario of fakeOnlyScenarios())
    it(`${scenario.name}${castInWords(castsOf(scenario, ipvsModule))}`, leftOut("fake-host", scenario.fakeOnly ?? ""), () =>
      expect.unreachable(),
    );
});

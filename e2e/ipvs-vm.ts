import { runVmChecks } from "@turnout/house/vm";
import { ipvsChecks } from "./ipvs-checks.ts";

/** The program in the guest. */
const { checks, destroy } = ipvsChecks();
try {
  await runVmChecks(checks);
} finally {
  await destroy();
}

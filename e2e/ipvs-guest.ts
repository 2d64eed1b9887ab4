import { playGuestChecks } from "@turnout/house/guest";
import { ipvsChecks } from "./ipvs-checks.ts";

/** The program in the guest. */
const { checks, destroy } = ipvsChecks();
try {
  await playGuestChecks(checks);
} finally {
  await destroy();
}

import { runVmChecks } from "../checks.ts";
import { IPVS_CHECKS } from "./ipvs-checks.ts";

const [, , ...args] = process.argv;
await runVmChecks(IPVS_CHECKS);
process.stdout.write(`${JSON.stringify({ args, variable: process.env["VARIABLE"] })}\n`);
process.stderr.write("the last words\n");
process.exitCode = 3;

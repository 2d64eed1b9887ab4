import { playGuestChecks } from "../checks.ts";
import { IPVS_CHECKS } from "./ipvs-checks.ts";

const [, , ...args] = process.argv;
await playGuestChecks(IPVS_CHECKS);
process.stdout.write(`${JSON.stringify({ args, variable: process.env["VARIABLE"] })}\n`);
process.stderr.write("the last words\n");
process.exitCode = 3;

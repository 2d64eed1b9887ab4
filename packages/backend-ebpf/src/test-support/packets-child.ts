// Run by packets-kernel.test.ts in namespaces of its own; prints what it saw as JSON.
import { flowScenarios } from "./packet-flows.ts";
import { scenarios } from "./packet-scenarios.ts";
import { trials } from "./packet-trials.ts";

const [, , name = ""] = process.argv;
const scenario = { ...scenarios, ...flowScenarios, ...trials }[name];
if (scenario === undefined) throw new Error(`no scenario "${name}"`);
process.stdout.write(JSON.stringify(await scenario()));
process.exit(0);

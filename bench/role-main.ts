import { harnessOver, lineReader, send } from "./line-channel.ts";
import { ROLES } from "./roles/index.ts";

/** The entry of every process that is measured: `role-main.ts ROLE PARAMETERS-AS-JSON`. */
const [, , name = "", parameters = "{}"] = process.argv;
const lines = lineReader(process.stdin);
try {
  const role = ROLES[name];
  if (role === undefined) throw new Error(`there is no role "${name}"`);
  const value = await role(JSON.parse(parameters) as never, harnessOver(lines, process.stdout));
  send(process.stdout, { kind: "result", value });
} catch (error) {
  send(process.stdout, { kind: "failed", text: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exitCode = 1;
}
// What is still open is of no use any more.
process.exit();

import { readFileSync } from "node:fs";
import { exitPrinted, guardOutput, processEnvironment } from "@turnout/client/daemon";
import { createProcessRights, createWorld, trimMemory } from "@turnout/host";
import type { Environment } from "./environment.ts";
import { runProgram } from "./program.ts";

guardOutput("turnout");
const { version, dependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Environment;
const env: Environment = {
  ...processEnvironment({ version, createWorld, createProcessRights, trimMemory }),
  isOutputTerminal: process.stdout.isTTY,
  dependencies,
  variables: process.env,
  workingDirectory: process.cwd(),
};
await exitPrinted(await runProgram(process.argv.slice(2), env));

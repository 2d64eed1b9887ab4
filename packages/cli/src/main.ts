import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { createProcessMemory, exitPrinted, guardOutput, hostFiles, terminationSignal } from "@turnout/client/daemon";
import { createProcessRights, createWorld, trimMemory } from "@turnout/host";
import type { Environment } from "./environment.ts";
import { runProgram } from "./program.ts";

function packageFacts(): Pick<Environment, "version" | "dependencies"> {
  const { version, dependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Environment;
  return { version, dependencies };
}

function processEnvironment(): Environment {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY,
    isOutputTerminal: process.stdout.isTTY,
    hostname: hostname(),
    platform: process.platform,
    ...packageFacts(),
    signal: terminationSignal({ on: (event, listener) => process.on(event, listener), exit: (code) => process.exit(code) }),
    variables: process.env,
    workingDirectory: process.cwd(),
    nowMs: () => Date.now(),
    readFile: (path) => readFile(path, "utf8"),
    ...(process.platform === "linux"
      ? { host: { files: hostFiles, rights: createProcessRights(), memory: createProcessMemory(trimMemory) } }
      : {}),
    writeFile: (path, text) => writeFile(path, text),
    createWorld: (log) => createWorld({ log }),
  };
}

guardOutput("turnout");
await exitPrinted(await runProgram(process.argv.slice(2), processEnvironment()));

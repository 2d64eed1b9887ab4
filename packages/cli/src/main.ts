import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { terminationSignal } from "@turnout/client";
import { createWorld } from "@turnout/host";
import type { Environment } from "./environment.ts";
import { runProgram } from "./program.ts";

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string };
  return version;
}

function processEnvironment(): Environment {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY,
    hostname: hostname(),
    version: packageVersion(),
    signal: terminationSignal({ on: (event, listener) => process.on(event, listener), exit: (code) => process.exit(code) }),
    variables: process.env,
    workingDirectory: process.cwd(),
    nowMs: () => Date.now(),
    readFile: (path) => readFile(path, "utf8"),
    createWorld: (log) => {
      const world = createWorld({ log });
      return { ...world, close: () => world.netlink.close() };
    },
  };
}

/** Resolve when everything printed has been taken, or could not be: to the exit code. */
async function printed(code: number): Promise<number> {
  return await new Promise((resolve) => process.stdout.write("", (error) => resolve(error ? FAILED : code)));
}

const FAILED = 1;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that goes away (`turnout print | head`) ends the command quietly.
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(
    `turnout: [tool_failed] what was asked for can't be written (${error.message}): standard output: is the disk full?\n`,
  );
  process.exit(FAILED);
});
// A log that nobody takes any more (its reader died, its disk is full) is no reason to stop following services; nobody can be told.
process.stderr.on("error", () => undefined);
process.exit(await printed(await runProgram(process.argv.slice(2), processEnvironment())));

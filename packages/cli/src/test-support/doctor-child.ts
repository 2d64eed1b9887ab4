import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createWorld } from "@turnout/host";
import type { Environment } from "../environment.ts";
import { runProgram } from "../program.ts";

/** What is done to the network namespace before `turnout doctor` looks at it, and to have it as it was. */
export interface Situation {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/** What it said of one. */
export interface Told {
  readonly name: string;
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const sh = (script: string): Buffer => execFileSync("sh", ["-ec", script], { stdio: ["ignore", "pipe", "inherit"] });

async function doctor(): Promise<Omit<Told, "name">> {
  let [out, err] = ["", ""];
  const env: Environment = {
    out: (text) => (out += text),
    err: (text) => (err += text),
    isTerminal: false,
    isOutputTerminal: false,
    hostname: "node1",
    platform: "linux",
    version: "1.2.3",
    dependencies: {},
    signal: new AbortController().signal,
    variables: {},
    workingDirectory: process.cwd(),
    nowMs: () => Date.now(),
    readFile: (path) => Promise.reject(new Error(path)),
    writeFile: (path) => Promise.reject(new Error(path)),
    createWorld: (log) => createWorld({ log }),
  };
  const code = await runProgram(["doctor", "-o", "json"], env);
  return { code, out, err };
}

// One process plays all situations: starting one takes longer than looking.
const told: Told[] = [];
for (const { name, before, after } of JSON.parse(readFileSync(0, "utf8")) as readonly Situation[]) {
  sh(before);
  told.push({ name, ...(await doctor()) });
  sh(after);
}
process.stdout.write(JSON.stringify(told));

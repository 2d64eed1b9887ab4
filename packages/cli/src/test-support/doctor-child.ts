import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createWorld } from "@turnout/host";
import { ToyEnvironment } from "./toy-environment.ts";

/** What is done to the network namespace before `turnout doctor` looks at it, and to have it as it was. */
export interface Situation {
  readonly name: string;
  readonly before: string;
  readonly after: string;
  /** What a proxy that runs here answers about itself; absent: none runs. */
  readonly status?: unknown;
}

/** What it said of one. */
export interface Reported {
  readonly name: string;
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const sh = (script: string): Buffer => execFileSync("sh", ["-ec", script], { stdio: ["ignore", "pipe", "inherit"] });

async function proxyThatSays(status: unknown): Promise<Server> {
  const server = createServer((_request, response) => response.end(JSON.stringify(status))).listen(10_249, "127.0.0.1");
  await once(server, "listening");
  return server;
}

// One process plays all situations: starting one takes longer than looking.
const env = await ToyEnvironment.create();
env.createWorld = (log) => createWorld({ log });
const reported: Reported[] = [];
for (const { name, before, after, status } of JSON.parse(readFileSync(0, "utf8")) as readonly Situation[]) {
  sh(before);
  const proxy = status === undefined ? undefined : await proxyThatSays(status);
  reported.push({ name, ...(await env.run("doctor", "-o", "json")) });
  proxy?.close();
  proxy?.closeAllConnections();
  sh(after);
}
process.stdout.write(JSON.stringify(reported));
await env.remove();

import { createHash } from "node:crypto";
import type { Proxy } from "./proxy.ts";

const PORTS = { backend: { metrics: 10_249, healthz: 10_256 }, stateServer: { metrics: 12_091, healthz: 12_092 } } as const;

/** One of a node's two processes. */
export type Half = keyof typeof PORTS;

/** Ask a metric of a process, summed over all its series. */
export async function metricOf({ node }: Proxy, half: Half, name: string): Promise<number> {
  const { body } = await node.agent().get({ address: node.address("IPv4"), port: PORTS[half].metrics, path: "/metrics" });
  const values = [...body.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].map(([, value]) => Number(value));
  if (values.length === 0) throw new Error(`no metric ${name}:\n${body}`);
  return values.reduce((sum, value) => sum + value, 0);
}

/** How many kernel objects a backend has written and removed so far. */
export async function writesOf(proxy: Proxy): Promise<number> {
  return (
    (await metricOf(proxy, "backend", "turnout_objects_put_total")) + (await metricOf(proxy, "backend", "turnout_objects_removed_total"))
  );
}

/** What a process's health server answers, by path; 0 when nobody does. */
export async function healthOf({ node }: Proxy, half: Half, paths: readonly string[] = ["/healthz", "/livez"]): Promise<readonly number[]> {
  const request = { address: node.address("IPv4"), port: PORTS[half].healthz };
  return Promise.all(paths.map(async (path) => (await node.agent().get({ ...request, path })).status));
}

/** Tells one state of a node's rules from another; counters and affinity are not in it. */
export async function rulesOf({ node }: Proxy): Promise<string> {
  const { stdout } = await node.run("nft", ["list", "ruleset"]);
  return createHash("sha256").update(stdout).digest("hex");
}

/** A line that a process logged. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly error?: string;
}

/** Reads what a process logs from now on. */
export function listenTo(log: () => string): () => readonly LogLine[] {
  const before = log().length;
  return () =>
    log()
      .slice(before)
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as LogLine);
}

/** The lines that tell of trouble, as what they say. */
export function problems(lines: readonly LogLine[]): readonly string[] {
  return lines.filter(({ level }) => level === "warn" || level === "error").map(({ msg }) => msg);
}

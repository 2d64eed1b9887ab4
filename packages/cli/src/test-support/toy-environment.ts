import type { Exec } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFakeExec } from "@turnout/host/testing";
import type { Environment } from "../environment.ts";
import { freePorts } from "../demo/loopback/stage.ts";
import { runProgram } from "../program.ts";

/** What one command line left. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A directory of its own and a command that runs in it, with real files and time, and a host that is not touched. */
export class ToyEnvironment {
  readonly directory: string;
  /** Everything printed so far by commands under way. */
  out = "";
  err = "";
  stop: AbortController = new AbortController();
  isOutputTerminal: boolean = false;
  /** No tool is run where this isn't replaced. */
  exec: Exec = createFakeExec([]);
  createWorld: Environment["createWorld"] = (log) => ({ exec: this.exec, clock: systemClock(), log });

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(): Promise<ToyEnvironment> {
    return new ToyEnvironment(await mkdtemp(join(tmpdir(), "turnout-cli-")));
  }

  /** Write a file; returns its path. */
  async file(name: string, text: string): Promise<string> {
    const path = join(this.directory, name);
    await writeFile(path, text);
    return path;
  }

  /** Run one command line to its end. */
  async run(...args: readonly string[]): Promise<Outcome> {
    this.out = "";
    this.err = "";
    this.stop = new AbortController();
    const code = await runProgram(args, this.#environment());
    return { code, out: this.out, err: this.err };
  }

  /** What the toy backend's kernel has of a family, as text. */
  kernel(family: string): Promise<string> {
    return readFile(join(this.directory, `kernel-${family}.json`), "utf8").catch(() => "");
  }

  /** Wait until something has come about, ten seconds at most. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    for (let attempt = 0; attempt < 1_000; attempt += 1) {
      if (await isSo()) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`never happened: ${what}\n${this.out}${this.err}`);
  }

  async remove(): Promise<void> {
    this.stop.abort();
    await rm(this.directory, { recursive: true });
  }

  #environment(): Environment {
    return {
      out: (text) => (this.out += text),
      err: (text) => (this.err += text),
      isTerminal: false,
      isOutputTerminal: this.isOutputTerminal,
      platform: "linux",
      hostname: "node1",
      version: "1.2.3",
      dependencies: {},
      signal: this.stop.signal,
      variables: {},
      workingDirectory: this.directory,
      nowMs: () => 0,
      readFile: (path) => readFile(path, "utf8"),
      writeFile: (path, text) => writeFile(path, text),
      createWorld: this.createWorld,
    };
  }
}

/** A Service with one endpoint on each of two nodes, and the node itself. */
export const CART = `
apiVersion: v1
kind: Node
metadata: {name: node1, labels: {topology.kubernetes.io/zone: a}}
status: {addresses: [{type: InternalIP, address: 172.18.0.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ipFamilies: [IPv4], ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.1.5], nodeName: node1, conditions: {ready: true}}
- {addresses: [10.1.2.5], nodeName: node2, conditions: {ready: true}}
`;

/** A third party's backend as it would write it: its kernel is a file per family beside it. */
export const TOY_BACKEND = `
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
const can = Object.fromEntries(["IPv4", "IPv6", "TCP", "UDP", "SCTP", "sessionAffinity", "sourceRanges", "clientAddress", "hairpin", "hostOrigin", "drop"].map((name) => [name, true]));
const problem = (code, text) => Object.assign(new Error("[" + code + "] " + text), { name: "ProxyError", code, what: text });
export default {
  name: "toy", contract: 2, residence: "kernel", capabilities: can,
  variants: { undefinedClusterIPPort: "pass", unallocatedClusterIP: "pass", nodePortRejectScope: "anyLocalAddress", rejectFromHost: false, blockedWithoutEndpoints: "drop", affinityScope: "row", nodePortsOnLoopback: "never" },
  countingOptions: {},
  parseOptions: (raw) => {
    for (const name of Object.keys(raw)) if (name !== "fail") throw problem("invalid_object", "unknown toy option " + name);
    return raw;
  },
  probe: async () => ({ facts: {}, versions: {}, problems: [] }),
  open: async (options) => ({ close: async () => appendFileSync(new URL("closed.txt", import.meta.url), "closed\\n"), family: (family) => {
    const file = new URL("kernel-" + family + ".json", import.meta.url);
    const held = () => new Map(existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : []);
    return {
      skeleton: () => [{ kind: "table", key: family, value: true }],
      render: (row) => [{ kind: "shared", key: "pick", value: 1 }, ...row.destinations.map(({ address, port }) => ({ kind: "service", key: address + ":" + port, value: row.endpoints.map((endpoint) => endpoint.ip) }))],
      plan: ({ put, remove }) => ({ steps: [...remove.map(({ kind, key }) => ["delete", kind, key]), ...put.map(({ after }) => ["put", after.kind, after.key, after.value])] }),
      explain: ({ steps }) => steps.map((step) => step.slice(0, 3).join(" ")).join("\\n"),
      counts: async () => new Map([...held().keys()].filter((id) => id.startsWith("service ")).map((id) => [id, { connections: 3, datagrams: 1, bytesIn: 9, bytesOut: 9, rejects: 1, dropsWithoutLocal: 1, dropsOutsideRanges: 1 }])),
      observe: async () => ({ objects: new Map([...held()].map(([id, object]) => [id, object])), lingering: [] }),
      apply: async ({ steps }) => {
        if (options.fail === true) throw problem("tool_failed", "the toy refuses");
        const objects = held();
        for (const [verb, kind, key, value] of steps) verb === "put" ? objects.set(kind + " " + key, { kind, key, value }) : objects.delete(kind + " " + key);
        if (objects.size === 0) rmSync(file, { force: true });
        else writeFileSync(file, JSON.stringify([...objects]));
        return {};
      },
    };
  } }),
};
`;

/** A port that nobody had a moment ago. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyError, type Clock } from "@turnout/core";
import { createLocalAgent, type Agent } from "@turnout/lab";
import { turnoutArguments } from "../proxy.ts";
import { DNS, manifestsOf, NEW, OLD, POD_PORT, TOWN, type Replica, type TownEndpoint, type TownService } from "./town.ts";
import { ROOTLESS_BACKEND } from "../../registry.ts";

const LOOPBACK = "127.0.0.1";
const LOG_CHARACTERS_MAX = 100_000;
const ASK_AGAIN_MS = 20;
const GIVE_UP_MS = 20_000;

/** The running town: server processes, one client process, a file of services, and the real command. */
export interface LoopbackStage {
  readonly client: Agent;
  /** Where a service is answered on this host. */
  readonly addressOf: (name: TownService["name"]) => { readonly address: string; readonly port: number; readonly transport: "TCP" | "UDP" };
  /** Say who serves a service now, by writing the file anew. */
  setEndpoints(names: readonly TownService["name"][], endpoints: readonly TownEndpoint[]): Promise<void>;
  /** A server takes no more connections; those it has go on. */
  drain(replica: Replica): Promise<void>;
  /** Ask until it is as wanted; how long that took in ms. @throws {ProxyError} `timed_out`, or what became of the proxy. */
  until(what: string, isSo: () => Promise<boolean>): Promise<number>;
  /** Wait. @throws {ProxyError} `canceled` on abort. */
  pause(ms: number): Promise<void>;
  nowMs(): number;
  destroy(): Promise<void>;
}

/** What the stage is built with. */
export interface LoopbackOptions {
  readonly clock: Clock;
  /** A steady clock with fractions, in ms. */
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/** Build the town; nothing of it needs a right that a user lacks. @throws {ProxyError} what can't be started; nothing is left then. */
export async function buildLoopbackStage(options: LoopbackOptions): Promise<LoopbackStage> {
  const folder = await mkdtemp(join(tmpdir(), "turnout-demo-"));
  const servers = new Map<Replica, { readonly agent: Agent; readonly port: number }>();
  const client = createLocalAgent("the client");
  let proxy: ChildProcess | undefined;
  const destroy = async (): Promise<void> => {
    if (proxy !== undefined) await ended(proxy);
    for (const { agent } of servers.values()) agent.close();
    client.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const replicas = [...OLD, ...NEW, ...DNS];
    const free = (await freePorts(replicas.length + TOWN.length)).values();
    for (const replica of replicas) servers.set(replica, { agent: createLocalAgent(replica.name), port: free.next().value ?? 0 });
    await Promise.all(
      [...servers].map(([{ name }, { agent, port }]) =>
        agent.serve({ name, transport: name.startsWith("dns") ? "UDP" : "TCP", port, address: LOOPBACK }),
      ),
    );
    const ports = new Map<TownService["name"], number>();
    for (const { name } of TOWN) ports.set(name, free.next().value ?? 0);
    const file = join(folder, "town.yaml");
    const now: Record<TownService["name"], readonly TownEndpoint[]> = { cart: [], checkout: [], search: [], dns: [] };
    const setEndpoints: LoopbackStage["setEndpoints"] = async (names, endpoints) => {
      for (const name of names) now[name] = endpoints;
      await writeFile(`${file}.new`, manifestsOf(now));
      await rename(`${file}.new`, file);
    };
    const started = OLD.map((replica) => ({ replica }));
    await setEndpoints(["cart", "checkout"], started);
    await setEndpoints(
      ["dns"],
      DNS.map((replica) => ({ replica })),
    );
    proxy = spawn(process.execPath, proxyArguments(file, ports, servers), { stdio: ["ignore", "pipe", "pipe"] });
    return { ...stageOf(options, proxy, client, ports), setEndpoints, drain: (replica) => drain(servers, replica), destroy };
  } catch (error) {
    await destroy();
    throw error;
  }
}

function stageOf(
  { clock, nowMs, signal }: LoopbackOptions,
  proxy: ChildProcess,
  client: Agent,
  ports: ReadonlyMap<TownService["name"], number>,
): Pick<LoopbackStage, "client" | "addressOf" | "until" | "pause" | "nowMs"> {
  let log = "";
  const take = (chunk: Buffer): void => void (log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX));
  proxy.stdout?.on("data", take);
  proxy.stderr?.on("data", take);
  const pause = async (ms: number): Promise<void> => {
    await clock.sleep(ms, signal);
    if (signal.aborted) throw new ProxyError("canceled", "the demo was stopped");
  };
  return {
    client,
    pause,
    nowMs,
    addressOf: (name) => ({
      address: LOOPBACK,
      port: ports.get(name) ?? 0,
      transport: TOWN.find((service) => service.name === name)?.protocol ?? "TCP",
    }),
    until: async (what, isSo) => {
      const startMs = nowMs();
      while (!(await isSo())) {
        const isGone = proxy.exitCode !== null || proxy.signalCode !== null;
        if (isGone || nowMs() - startMs > GIVE_UP_MS) {
          const hint = `the proxy's log:\n${log.trimEnd()}`;
          throw new ProxyError(isGone ? "tool_failed" : "timed_out", isGone ? "the proxy ended" : what, { object: "turnout run", hint });
        }
        await pause(ASK_AGAIN_MS);
      }
      return nowMs() - startMs;
    },
  };
}

function proxyArguments(
  file: string,
  ports: ReadonlyMap<TownService["name"], number>,
  servers: ReadonlyMap<Replica, { readonly port: number }>,
): readonly string[] {
  const endpoints = [...servers].map(([{ ip }, { port }]) => `${ip}:${POD_PORT}=${LOOPBACK}:${port}`);
  return [
    ...turnoutArguments(),
    "run",
    `--backend=${ROOTLESS_BACKEND}`,
    `--source=file:${file}`,
    "--node-name=laptop",
    ...[...ports].map(([name, port]) => `--map=town/${name}:main=${LOOPBACK}:${port}`),
    `--backend-option=endpoint-map=${endpoints.join(",")}`,
    "--healthz-bind-address=",
    "--metrics-bind-address=",
  ];
}

async function drain(servers: ReadonlyMap<Replica, { readonly agent: Agent; readonly port: number }>, replica: Replica): Promise<void> {
  const server = servers.get(replica);
  await server?.agent.stop({ transport: "TCP", port: server.port, address: LOOPBACK, how: "drain" });
}

async function ended(proxy: ChildProcess): Promise<void> {
  if (proxy.exitCode !== null || proxy.signalCode !== null || proxy.pid === undefined) return;
  const exit = once(proxy, "exit");
  // By now nobody is served, so nothing has to be waited for.
  proxy.kill("SIGKILL");
  await exit;
}

/** Find ports that nobody listens on; all are held until the last one is found, as the kernel gives one out again as soon as it is free. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, LOOPBACK));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

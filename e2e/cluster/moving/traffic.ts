import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { until } from "../../apiserver/until.ts";
import { fill } from "../kubectl.ts";
import type { Kubectl } from "../kubectl.ts";
import type { KubeCluster } from "../kube-cluster.ts";
import { untilOut } from "../proxies.ts";

/** What clients have counted so far; see client.ts. */
export interface Tally {
  readonly kept: number;
  readonly broken: number;
  readonly tried: number;
  readonly failed: number;
  /** The last that went wrong; "": nothing did. */
  readonly why: string;
}

/** Traffic through a Service: from pods and from the host of every node by its cluster IP, and from outside by its node port. */
export interface Traffic {
  /** What was counted until a moment ago, by who asks. @throws {Error} when a client does not count any more. */
  count(): Promise<ReadonlyMap<string, Tally>>;
  /** Wait until so many more new connections were tried by each. */
  more(tries: number): Promise<void>;
  stop(): Promise<void>;
}

/** As in traffic.yaml. */
const NODE_PORT = 30_080;
const WORKLOADS = ["move-server", "move-pod", "move-host"] as const;
/** Clients write a line each second; where none came for so long, in ms, the one outside hangs. */
const STALE_MS = 15_000;
const START_MS = 120_000;
/** Some hundred new connections take some ten seconds; a client that hangs is told by this. */
const MORE_MS = 120_000;
const programAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Start it, and wait until all clients have their kept connections. */
export async function startTraffic({ before }: KubeCluster, kubectl: Kubectl, image: string): Promise<Traffic> {
  const files = [`--from-file=server.mts=${programAt("server.ts")}`, `--from-file=client.mts=${programAt("client.ts")}`];
  await kubectl(["create", "configmap", "move-traffic", ...files]);
  const manifest = await readFile(programAt("traffic.yaml"), "utf8");
  await kubectl(["apply", "-f", "-"], fill(manifest, { IMAGE: image }));
  for (const name of WORKLOADS) await untilOut(kubectl, "default", `daemonset/${name}`);
  const address = await kubectl(["get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}"]);
  const outside = followedClient(before, `${bracketed(address.split(" ")[0] ?? "")}:${NODE_PORT}`);
  const pods = await podsOf(kubectl);
  const count = async (): Promise<ReadonlyMap<string, Tally>> => {
    const reported = await Promise.all(pods.map(async (pod) => [pod, lastTally(await kubectl(["logs", pod, "--tail=1"]), pod)] as const));
    return new Map([...reported, ["outside", outside.tally()]]);
  };
  const tried = async (): Promise<number> => Math.min(...[...(await count()).values()].map((tally) => tally.tried));
  await until("all clients have begun", START_MS, async () => {
    try {
      return (await tried()) > 0;
    } catch {
      // One has not written yet.
      return false;
    }
  });
  return {
    count,
    more: async (tries) => {
      const enough = (await tried()) + tries;
      await until(`${tries} more connections of each client`, MORE_MS, async () => (await tried()) >= enough);
    },
    stop: async () => {
      outside.child.kill();
      await kubectl(["delete", "configmap/move-traffic", "service/move", ...WORKLOADS.map((name) => `daemonset/${name}`)]);
    },
  };
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

async function podsOf(kubectl: Kubectl): Promise<readonly string[]> {
  const names = await kubectl(["get", "pods", "-l", "app in (move-pod, move-host)", "-o", "name"]);
  return names.split("\n").filter((name) => name !== "");
}

/** Read the last line that a client wrote. @throws {Error} when there is none. */
export function lastTally(text: string, who: string): Tally {
  const [line] = text.trim().split("\n").slice(-1);
  if (line === undefined || !line.startsWith("{")) throw new Error(`${who} does not count: ${text}`);
  return JSON.parse(line) as Tally;
}

/** A client beside the cluster. */
function followedClient(before: readonly string[], target: string): { readonly child: ChildProcess; tally(): Tally } {
  const [program, ...args] = [...before, process.execPath, programAt("client.ts"), target];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  let saidMs = performance.now();
  child.stdout?.on("data", (piece: Buffer) => {
    said = `${said}${String(piece)}`.slice(-4_096);
    saidMs = performance.now();
  });
  return {
    child,
    tally: () => {
      if (performance.now() - saidMs > STALE_MS) throw new Error(`the client outside says nothing: ${said}`);
      return lastTally(said.slice(0, said.lastIndexOf("\n") + 1), "the client outside");
    },
  };
}

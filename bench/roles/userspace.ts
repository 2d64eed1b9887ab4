import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRole, TURNOUT } from "../role-process.ts";
import { answering, pings, SERVER_PORT, throughput, visits } from "./userspace-ends.ts";

/** What carries bytes from the client to the server; `direct`: nobody. */
export type Carrier = "direct" | "turnout" | "socat" | "nginx";

/** Who is measured, and how long. */
export interface UserspaceParameters {
  readonly carriers: readonly Carrier[];
  readonly forMs: number;
  readonly pings: number;
}

/** What one carrier did. */
export interface UserspaceMetrics {
  readonly carrier: Carrier;
  readonly oneMBps: number;
  readonly manyMBps: number;
  readonly visitsPerSecond: number;
  /** Round trips of 64 bytes, ms. */
  readonly pings: readonly number[];
  /** Resident memory of its processes afterwards, bytes; 0 for nobody. */
  readonly rss: number;
}

const MANY = 16;
const PORTS: Readonly<Record<Carrier, number>> = { direct: SERVER_PORT, turnout: 9_001, socat: 9_002, nginx: 9_003 };

/** Measure each carrier in turn, in this process's own namespace: client here, server and carrier in processes of their own. */
export async function userspace({ carriers, forMs, pings: count }: UserspaceParameters): Promise<readonly UserspaceMetrics[]> {
  spawnSync("ip", ["link", "set", "lo", "up"]);
  const folder = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const server = openRole("userspace-server", {}, { namespace: "same" });
  const numbers: UserspaceMetrics[] = [];
  try {
    await server.phase("listening");
    for (const carrier of carriers) {
      const running = carrier === "direct" ? undefined : await start(carrier, folder);
      const port = PORTS[carrier];
      try {
        await answering(port);
        numbers.push({
          carrier,
          oneMBps: await throughput(port, 1, forMs),
          manyMBps: await throughput(port, MANY, forMs),
          visitsPerSecond: await visits(port, forMs),
          pings: await pings(port, count),
          rss: running === undefined ? 0 : residentBytes(running.pid),
        });
      } finally {
        await running?.end();
      }
    }
    return numbers;
  } finally {
    server.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

interface RunningCarrier {
  readonly pid: number;
  end(): Promise<void>;
}

async function start(carrier: Exclude<Carrier, "direct">, folder: string): Promise<RunningCarrier> {
  const [file = "", ...args] = await commandOf(carrier, folder);
  const child = spawn(file, args, { stdio: ["ignore", "ignore", "ignore"] });
  const exit = once(child, "exit");
  return {
    pid: child.pid ?? 0,
    end: async () => {
      child.kill("SIGTERM");
      await exit;
    },
  };
}

async function commandOf(carrier: Exclude<Carrier, "direct">, folder: string): Promise<readonly string[]> {
  const [port, server] = [PORTS[carrier], `127.0.0.1:${SERVER_PORT}`];
  switch (carrier) {
    case "socat":
      return ["socat", `TCP-LISTEN:${port},bind=127.0.0.1,fork,reuseaddr,backlog=4096,nodelay`, `TCP:${server},nodelay`];
    case "nginx": {
      const file = join(folder, "nginx.conf");
      await writeFile(file, nginxConfiguration(folder, port, server));
      return ["nginx", "-p", folder, "-c", file];
    }
    case "turnout": {
      const file = join(folder, "services.yaml");
      await writeFile(file, SERVICES);
      return [
        TURNOUT,
        "run",
        "--backend=userspace",
        `--source=file:${file}`,
        `--map=bench/server:main=127.0.0.1:${port}`,
        `--backend-option=endpoint-map=10.1.1.1:80=${server}`,
        "--healthz-bind-address=",
        "--metrics-bind-address=",
      ];
    }
  }
}

/** One worker, as there is one of us, and half-closes as we have them; all else as Debian's nginx has it. Pure. */
function nginxConfiguration(folder: string, port: number, server: string): string {
  return `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 4096; }
stream { server { listen 127.0.0.1:${port} backlog=4096; proxy_pass ${server}; proxy_half_close on; } }
`;
}

const SERVICES = `apiVersion: v1
kind: Service
metadata: { name: server, namespace: bench }
spec: { clusterIP: 10.96.0.1, ports: [{ name: main, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: server-1, namespace: bench, labels: { kubernetes.io/service-name: server } }
addressType: IPv4
ports: [{ name: main, port: 80 }]
endpoints: [{ addresses: [10.1.1.1] }]
`;

/** Of a process and its children, as ps counts it. */
function residentBytes(pid: number): number {
  const { stdout } = spawnSync("ps", ["-o", "rss=", "--pid", String(pid), "--ppid", String(pid)], { encoding: "utf8" });
  return stdout.split("\n").reduce((sum, line) => sum + Number(line) * 1024, 0);
}

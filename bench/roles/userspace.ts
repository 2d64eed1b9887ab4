import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { inFolder } from "../folder.ts";
import { memoryNow } from "../memory-sampler.ts";
import { openRole, TURNOUT } from "../role-process.ts";
import { CONVERSATIONS, visit, visiting } from "@turnout/lab";
import type { Conversation, Talk, TrafficPlace } from "@turnout/lab";
import { TARGET_PORTS } from "../traffic-workload.ts";

/** What carries bytes from the client to the server; `direct`: no proxy. */
export type Carrier = "direct" | "turnout" | "socat" | "nginx";

/** Who is measured, and how long. */
export interface UserspaceParameters {
  readonly carrier: Carrier;
  readonly forMs: number;
  readonly pings: number;
}

/** What one carrier did. */
export interface UserspaceMetrics {
  readonly oneMBps: number;
  readonly manyMBps: number;
  readonly visitsPerSecond: number;
  /** Round trips of a byte, ms. */
  readonly pings: readonly number[];
  /** Resident memory of its processes afterwards, bytes; absent without a proxy. */
  readonly rss?: number;
}

const MANY = 16;
/** Questions before those that count. */
const WARM_UP = 200;
const SERVER_PORT = TARGET_PORTS.tcp;
const PORTS: Readonly<Record<Carrier, number>> = { direct: SERVER_PORT, turnout: 9_001, socat: 9_002, nginx: 9_003 };

/** Measure a carrier in this process's own namespace: client here, server and carrier in processes of their own. */
export async function userspace({ carrier, forMs, pings }: UserspaceParameters): Promise<UserspaceMetrics> {
  spawnSync("ip", ["link", "set", "lo", "up"]);
  const server = openRole("traffic-server", {}, { namespace: "same" });
  return await inFolder(async (folder) => {
    let running: RunningCarrier | undefined;
    try {
      const places = [{ address: "127.0.0.1", tcp: PORTS[carrier], udp: PORTS[carrier] }];
      const talk = { places, serverPid: await server.phase("listening") };
      running = carrier === "direct" ? undefined : await start(carrier, folder);
      await answering(places[0]);
      const rate = async (open: Conversations, count: number): Promise<number> => await perSecond(await opened(open, talk, count), forMs);
      return {
        oneMBps: (await rate(CONVERSATIONS.bulk, 1)) / 1e6,
        manyMBps: (await rate(CONVERSATIONS.bulk, MANY)) / 1e6,
        visitsPerSecond: await rate((all) => Promise.resolve(visiting(all)), 1),
        pings: await roundTrips(await CONVERSATIONS.requests(talk), pings),
        ...(running === undefined ? {} : { rss: memoryNow(running.pid) }),
      };
    } finally {
      await running?.end();
      server.kill();
    }
  });
}

type Conversations = (talk: Talk) => Promise<Conversation>;

function opened(open: Conversations, talk: Talk, count: number): Promise<readonly Conversation[]> {
  return Promise.all(Array.from({ length: count }, () => open(talk)));
}

/** Have conversations go on for a while; what all of them came to in a second. */
async function perSecond(all: readonly Conversation[], forMs: number): Promise<number> {
  const startMs = performance.now();
  await Promise.all(all.map((one) => one.work(() => performance.now() - startMs >= forMs)));
  const sum = all.reduce((total, one) => total + one.count(), 0);
  const tookMs = performance.now() - startMs;
  for (const one of all) one.end();
  return (sum * 1000) / tookMs;
}

/** What single questions take, ms each, after some that warm up. */
async function roundTrips(asking: Conversation, count: number): Promise<readonly number[]> {
  const samples: number[] = [];
  for (let k = -WARM_UP; k < count; k++) {
    const [startMs, before] = [performance.now(), asking.count()];
    await asking.work(() => asking.count() > before);
    if (k >= 0) samples.push(performance.now() - startMs);
  }
  asking.end();
  return samples;
}

/** Wait until a proxy listens and passes a byte on. @throws {Error} when none does within ten seconds. */
async function answering(place: TrafficPlace | undefined): Promise<void> {
  if (place === undefined) throw new Error("there is no place to ask");
  for (const untilMs = performance.now() + 10_000; ; await sleep(50)) {
    try {
      await visit(place);
      return;
    } catch (error) {
      if (performance.now() > untilMs) throw error;
    }
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
    case "turnout":
      return [
        TURNOUT,
        "run",
        "--backend=userspace",
        `--source=file:${fileURLToPath(new URL("userspace-services.yaml", import.meta.url))}`,
        `--map=bench/server:main=127.0.0.1:${port}`,
        `--backend-option=endpoint-map=10.1.1.1:80=${server}`,
        "--healthz-bind-address=",
        "--metrics-bind-address=",
      ];
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

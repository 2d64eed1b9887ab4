import type { Agent, HoldStatus } from "@turnout/lab";
import type { TrafficFinding } from "./findings.ts";
import { addressOf, portOf, SHOP, type ShopService, type Way } from "./shop.ts";
import type { Stage } from "./stage.ts";

/** Two requests at a time, hundreds a second in all: enough to hit any gap, and the machine stays free for what is shown. */
const WORKERS = 2;
const PAUSE_MS = 10;
const HELD_PER_FAMILY = 4;
const ASK_EVERY_MS = 50;
const TIMEOUT_MS = 2_500;

/** Loads and kept connections that run while everything else happens. */
export interface Traffic {
  /** Requests answered so far. */
  answered(): Promise<number>;
  stop(): Promise<{ readonly traffic: readonly TrafficFinding[]; readonly held: readonly HoldStatus[] }>;
}

interface Source {
  readonly from: string;
  readonly service: ShopService;
  readonly way: Way;
  readonly what: string;
}

const SOURCES: readonly Source[] = [
  { from: "client1", service: SHOP.frontend, way: "loadBalancerIP", what: "outside client → frontend, load balancer" },
  { from: "pod-1-4", service: SHOP.cart, way: "clusterIP", what: "pod on node1 → cart, cluster IP" },
  { from: "pod-2-4", service: SHOP.dns, way: "clusterIP", what: "pod on node2 → dns, UDP" },
];

interface Running {
  readonly agent: Agent;
  readonly handle: number;
  readonly what: string;
}

/** Start all traffic. */
export async function startTraffic(stage: Stage): Promise<Traffic> {
  const loads: Running[] = [];
  const held: Running[] = [];
  for (const family of stage.families) {
    for (const { from, service, way, what } of SOURCES) {
      const agent = stage.cluster.place(from).agent();
      const target = { address: addressOf(service, way, family), port: portOf(service), transport: service.protocol };
      const handle = await agent.startLoad({ ...target, concurrency: WORKERS, pauseMs: PAUSE_MS, timeoutMs: TIMEOUT_MS });
      loads.push({ agent, handle, what: `${what}, ${family}` });
    }
    const agent = stage.cluster.place("client1").agent();
    const target = { address: addressOf(SHOP.frontend, "loadBalancerIP", family), port: portOf(SHOP.frontend) };
    for (let count = 0; count < HELD_PER_FAMILY; count += 1) {
      held.push({ agent, handle: await agent.hold({ ...target, everyMs: ASK_EVERY_MS }), what: "held" });
    }
  }
  return {
    answered: async () => {
      const tallies = await Promise.all(loads.map(({ agent, handle }) => agent.peekLoad(handle)));
      return tallies.reduce((sum, { ok }) => sum + ok, 0);
    },
    stop: async () => ({
      traffic: await Promise.all(loads.map(async ({ agent, handle, what }) => ({ what, tally: await agent.stopLoad(handle) }))),
      held: await Promise.all(held.map(({ agent, handle }) => agent.release(handle))),
    }),
  };
}

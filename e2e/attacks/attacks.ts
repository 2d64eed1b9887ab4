import { serviceManifest } from "@turnout/lab";
import type { ServiceManifest } from "@turnout/lab";
import { setTimeout as sleep } from "node:timers/promises";
import type { Arena } from "./arena.ts";

/** Something that a tenant, or a client that may send packets, does to others. */
export interface Attack {
  readonly name: string;
  /** What the tenant has before the victims are looked at. */
  readonly prepare?: (arena: Arena) => Promise<void>;
  /** Does it, over and over until `signal` aborts if once is not enough. */
  readonly play: (arena: Arena, signal: AbortSignal) => Promise<void>;
}

const NAMESPACE = "evil";
const DNS = { name: "u", protocol: "UDP", port: 53, targetPort: 8080 } as const;
/** The beginning of addresses that no pod has: packets to them are lost. */
const NOWHERE = "10.244.77";

/** A Service of the tenant. */
function evil(fields: Partial<ServiceManifest> & Pick<ServiceManifest, "name">): Record<string, unknown> {
  return serviceManifest({ namespace: NAMESPACE, clusterIPs: ["10.96.200.1"], ports: [{ port: 80, targetPort: 8080 }], ...fields });
}

/** Ports that differ in their numbers. */
function ports(count: number): ServiceManifest["ports"] {
  return Array.from({ length: count }, (_, at) => ({ name: `p${at}`, port: 1_000 + at, targetPort: 8080 }));
}

/** Slices of a Service with so many endpoints, a thousand in each, of which the first has `spare` of its endpoints left out. */
function slices(service: string, count: number, { ports: portCount = 1, spare = -1 } = {}): readonly Record<string, unknown>[] {
  const named =
    portCount === 1
      ? [{ name: "", protocol: "TCP", port: 8080 }]
      : ports(portCount).map(({ name }) => ({ name, protocol: "TCP", port: 8080 }));
  return Array.from({ length: Math.ceil(count / 1_000) }, (_slice, at) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: NAMESPACE, name: `${service}-${at}`, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    ports: named,
    endpoints: Array.from({ length: Math.min(1_000, count - at * 1_000) }, (_, index) => at * 1_000 + index)
      .filter((number) => number !== spare)
      .map((number) => ({ addresses: [`10.245.${Math.floor(number / 250)}.${(number % 250) + 1}`], conditions: { ready: true } })),
  }));
}

function overUdp(slice: Record<string, unknown>): Record<string, unknown> {
  return { ...slice, ports: [{ name: DNS.name, protocol: DNS.protocol, port: DNS.targetPort }] };
}

/** So many different addresses outside of the cluster. */
function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `11.${Math.floor(at / 62_500)}.${Math.floor(at / 250) % 250}.${(at % 250) + 1}`);
}

/** Write one thing after another, again and again. */
async function alternately(arena: Arena, signal: AbortSignal, pauseMs: number, turns: readonly (readonly unknown[])[]): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    await arena.api.apply(turns[turn % turns.length] ?? []);
    await sleep(pauseMs);
  }
}

/** All classes of attacks that a victim next to them could notice. */
export const ATTACKS: readonly Attack[] = [
  {
    name: "300 ports times 5,000 external IPs",
    play: async ({ api }) => await api.apply([evil({ name: "bomb", ports: ports(300), externalIPs: addresses(5_000) })]),
  },
  {
    name: "20,000 external IPs",
    play: async ({ api }) => await api.apply([evil({ name: "wide", externalIPs: addresses(20_000) })]),
  },
  {
    name: "65,536 source ranges",
    play: async ({ api }) => {
      const sourceRanges = Array.from({ length: 65_536 }, (_, at) => `10.${at >> 15}.${(at >> 7) & 255}.${(at & 127) * 2}/32`);
      await api.apply([evil({ name: "ranges", ingress: [{ ip: "198.51.100.209" }], sourceRanges })]);
    },
  },
  {
    name: "24 Services of 3,000 ports",
    play: async ({ api }) => {
      for (let at = 0; at < 24; at++)
        await api.apply([evil({ name: `many-${at}`, clusterIPs: [`10.96.200.${at + 1}`], ports: ports(3_000) })]);
    },
  },
  {
    name: "the API server's address as external IP",
    play: async (arena) => {
      await arena.api.apply([evil({ name: "thief", externalIPs: [arena.apiAddress], ports: [{ port: 6443, targetPort: 8080 }] })]);
      await sleep(1_000);
      await arena.api.dropWatches();
    },
  },
  {
    name: "a victim's pod as external IP",
    play: async ({ api, victimPod, thiefPod }) => {
      const service: ServiceManifest = {
        namespace: NAMESPACE,
        name: "thief",
        clusterIPs: ["10.96.200.1"],
        ports: [{ port: 8080 }],
        externalIPs: [victimPod],
      };
      const [slice] = slices("thief", 1);
      await api.apply([serviceManifest(service), { ...slice, endpoints: [{ addresses: [thiefPod], conditions: { ready: true } }] }]);
    },
  },
  {
    name: "a victim's pod as external IP of a Service without endpoints",
    play: async ({ api, victimPod }) => await api.apply([evil({ name: "thief", externalIPs: [victimPod], ports: [{ port: 8080 }] })]),
  },
  {
    name: "1,000 changes a second in 400 Services",
    prepare: async ({ api }) => await api.apply(churning(0)),
    play: async ({ api }, signal) => {
      for (let turn = 1; !signal.aborted; turn++) {
        await api.apply(churning(turn).slice(400 + ((turn * 50) % 400), 450 + ((turn * 50) % 400)));
        await sleep(50);
      }
    },
  },
  {
    name: "one endpoint of 20,000 times 20 ports comes and goes",
    prepare: async ({ api }) => await api.apply([evil({ name: "large", ports: ports(20) }), ...slices("large", 20_000, { ports: 20 })]),
    play: async (arena, signal) =>
      await alternately(arena, signal, 1_000, [slices("large", 1_000, { ports: 20, spare: 5 }), slices("large", 1_000, { ports: 20 })]),
  },
  {
    name: "one of 5,000 endpoints with affinity comes and goes",
    prepare: async ({ api }) => await api.apply([evil({ name: "affine", affinitySeconds: 10_800 }), ...slices("affine", 5_000)]),
    play: async (arena, signal) =>
      await alternately(arena, signal, 1_000, [slices("affine", 1_000, { spare: 5 }), slices("affine", 1_000)]),
  },
  {
    name: "100,000 clients are remembered, and an endpoint with affinity comes and goes",
    prepare: async ({ api }) => {
      const service = { name: "memory", affinitySeconds: 86_400, ports: [DNS], externalIPs: ["198.51.100.210"] };
      await api.apply([evil(service), ...slices("memory", 10).map(overUdp)]);
    },
    play: async (arena, signal) => {
      await arena.flood(["clients", "198.51.100.210", "53", "100000"], signal);
      await alternately(arena, signal, 1_000, [slices("memory", 10, { spare: 5 }).map(overUdp), slices("memory", 10).map(overUdp)]);
    },
  },
  {
    name: "a flood of a health check node port",
    prepare: async ({ api }) => {
      const fields = { ingress: [{ ip: "198.51.100.211" }], externalTrafficPolicy: "Local", healthCheckNodePort: 31_999 } as const;
      await api.apply([evil({ name: "health", ...fields, ports: [{ port: 80, targetPort: 8080, nodePort: 31_998 }] })]);
    },
    play: async (arena, signal) => await arena.flood(["http", arena.nodeAddress, "31999"], signal),
  },
  {
    name: "a Service that is its own endpoint",
    play: async (arena, signal) => {
      const [slice] = slices("loop", 1);
      await arena.api.apply([
        evil({ name: "loop", clusterIPs: ["10.96.200.7"], ports: [{ port: 8080 }] }),
        { ...slice, endpoints: [{ addresses: ["10.96.200.7"], conditions: { ready: true } }] },
      ]);
      await sleep(1_000);
      await arena.flood(["http", "10.96.200.7", "8080"], signal);
    },
  },
  {
    name: "a flood of datagrams to one Service",
    prepare: async ({ api }) => {
      const [slice = {}] = slices("flood", 1).map(overUdp);
      const service = evil({ name: "flood", ports: [DNS], externalIPs: ["198.51.100.212"] });
      await api.apply([service, { ...slice, endpoints: [{ addresses: [`${NOWHERE}.1`], conditions: { ready: true } }] }]);
    },
    play: async (arena, signal) => await arena.flood(["datagrams", "198.51.100.212", "53"], signal),
  },
];

/** Services of one namespace, and their slices as they are at one turn. */
function churning(turn: number): readonly unknown[] {
  const names = Array.from({ length: 400 }, (_, at) => `churn-${at}`);
  const services = names.map((name, at) => evil({ name, clusterIPs: [`10.96.${201 + Math.floor(at / 250)}.${(at % 250) + 1}`] }));
  const now = names.map((name) => ({
    ...slices(name, 1)[0],
    endpoints: [{ addresses: [`${NOWHERE}.${(turn % 250) + 1}`], conditions: { ready: true } }],
  }));
  return [...services, ...now];
}

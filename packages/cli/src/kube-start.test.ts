import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createApiServer, type ApiServer } from "@turnout/lab";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { freePort, TOY_BACKEND, ToyEnvironment } from "./test-support/toy-environment.ts";

let api: ApiServer;
let env: ToyEnvironment;
let kubeconfig: string;

beforeEach(async () => {
  api = await createApiServer();
  api.apply({ kind: "Node", metadata: { name: "node1" }, status: { addresses: [{ type: "InternalIP", address: "172.18.0.1" }] } });
  api.apply({ kind: "Service", metadata: { name: "cart" }, spec: { clusterIP: "10.96.0.10", ports: [{ port: 80 }] } });
  env = await ToyEnvironment.create();
  await env.file("toy.mjs", TOY_BACKEND);
  kubeconfig = await env.file("kubeconfig", api.kubeconfig());
});

afterEach(async () => {
  await env.remove();
  await api.close();
});

/** A server that has a port; it goes with the test. */
async function takenPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const RUN = ["run", "--backend", "./toy.mjs", "--healthz-bind-address", ""];

/** The lines of /metrics about requests to the API server that were answered with 200. */
async function answered(port: number): Promise<string> {
  const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(
    async (response) => await response.text(),
    () => "",
  );
  return text.split("\n").find((line) => line.startsWith('rest_client_requests_total{code="200",method="GET"')) ?? "";
}

it("a daemon tells of its start on its Node, and counts its requests", async () => {
  const port = await freePort();
  const done = env.run(...RUN, "--kubeconfig", kubeconfig, "--metrics-bind-address", `127.0.0.1:${port}`);
  await expect.poll(() => api.objects("Event")).toHaveLength(1);
  expect(api.objects("Event")[0]).toMatchObject({ reason: "Starting", regarding: { kind: "Node", name: "node1" } });
  await expect.poll(() => answered(port)).toContain(`host="${new URL(api.url).host}"} 5`);
  env.stop.abort();
  expect((await done).code).toBe(0);
});

it("a daemon tells at a Service, once, that its health check node port is taken", async () => {
  const port = await takenPort();
  const spec = {
    type: "LoadBalancer",
    externalTrafficPolicy: "Local",
    healthCheckNodePort: port,
    clusterIP: "10.96.0.11",
    ports: [{ port: 80 }],
  };
  api.apply({ kind: "Service", metadata: { namespace: "shop", name: "gate" }, spec });
  const done = env.run(...RUN, "--kubeconfig", kubeconfig, "--metrics-bind-address", "", "--nodeport-addresses", "127.0.0.1/32");
  await expect.poll(() => api.objects("Event")).toHaveLength(2);
  expect(api.objects("Event").find(({ type }) => type === "Warning")).toMatchObject({
    metadata: { namespace: "shop" },
    reason: "FailedToStartServiceHealthcheck",
    action: "Listen",
    note: `node node1 failed to start healthcheck "shop/gate" on port ${port}: listen tcp4 127.0.0.1:${port}: bind: address already in use`,
    regarding: { apiVersion: "v1", kind: "Service", namespace: "shop", name: "gate" },
  });
  // Each sync tries again, and says nothing new.
  for (const last of [12, 13]) {
    const clusterIP = `10.96.0.${last}`;
    api.apply({ kind: "Service", metadata: { name: `other-${last}` }, spec: { clusterIP, ports: [{ port: 80 }] } });
    await expect.poll(() => env.kernel("IPv4")).toContain(`${clusterIP}:80`);
  }
  env.stop.abort();
  expect((await done).code).toBe(0);
  expect(api.objects("Event")).toHaveLength(2);
});

it("a daemon that ends because a port is taken tells of it first", async () => {
  const port = await takenPort();
  const address = `127.0.0.1:${port}`;
  const own = ["--healthz-bind-address", address, "--metrics-bind-address", address, "--bind-address-hard-fail"];
  const { code } = await env.run("run", "--backend", "./toy.mjs", "--kubeconfig", kubeconfig, ...own);
  expect(code).toBe(1);
  const reported = api.objects("Event").map(({ reason, regarding, note }) => [reason, (regarding as { kind: string }).kind, note]);
  expect(reported).toContainEqual([
    "FailedToStartProxierHealthcheck",
    "Node",
    `healthz server failed: failed to start proxy healthz on ${address}: listen tcp ${address}: bind: address already in use`,
  ]);
  expect(reported).toContainEqual(["FailedToStartMetricServer", "Node", `listen tcp ${address}: bind: address already in use`]);
});

it.each([
  ["one sync", [...RUN, "--metrics-bind-address", "", "--once"]],
  ["a dry run", [...RUN, "--metrics-bind-address", "", "--once", "--dry-run"]],
  ["print", ["print"]],
])("%s is no start", async (_name, args) => {
  expect((await env.run(...args, "--kubeconfig", kubeconfig)).code).toBe(0);
  expect(api.requests.filter(({ method }) => method !== "GET")).toEqual([]);
});

/** Two Services of a namespace that want one external IP, and whether each has an endpoint. */
function applyBlueGreen(isBlueUp: boolean, isGreenUp: boolean): void {
  for (const [name, at, isUp] of [["blue", 1, isBlueUp] as const, ["green", 2, isGreenUp] as const]) {
    const metadata = { namespace: "shop", name, creationTimestamp: `2026-0${at}-01T00:00:00Z` };
    const spec = { clusterIP: `10.96.0.2${at}`, externalIPs: ["192.0.2.10"], ports: [{ port: 80 }] };
    api.apply({ kind: "Service", metadata, spec });
    const slice = { addressType: "IPv4", ports: [{ name: "", port: 8080 }], endpoints: isUp ? [{ addresses: [`10.1.1.${at}`] }] : [] };
    const labels = { "kubernetes.io/service-name": name };
    api.apply({ kind: "EndpointSlice", metadata: { namespace: "shop", name: `${name}-1`, labels }, ...slice });
  }
}

/** Events about contested addresses. */
function contests(): readonly unknown[] {
  return api.objects("Event").filter(({ reason }) => reason === "AddressContested");
}

it.each(["run", "serve"])(
  "R-71 a shared address follows endpoints, and each Service has one event that says so, from the process that reads Services: %s",
  async (reader) => {
    applyBlueGreen(true, true);
    const socket = `unix://${env.directory}/node.sock`;
    const isSplit = reader === "serve";
    const served = isSplit ? env.run("serve", "--kubeconfig", kubeconfig, "--listen", socket) : undefined;
    const server = env.stop;
    const source = isSplit ? ["--source", `api:${socket}`, "--node-name", "node1"] : ["--kubeconfig", kubeconfig];
    const done = env.run(...RUN, ...source, "--metrics-bind-address", "");
    for (const [isBlueUp, isGreenUp, endpoint] of [
      [true, true, "10.1.1.1"],
      [false, true, "10.1.1.2"],
      [false, false, ""],
      [true, true, "10.1.1.1"],
      [false, true, "10.1.1.2"],
    ] as const) {
      applyBlueGreen(isBlueUp, isGreenUp);
      const held = `"192.0.2.10:80","value":[${endpoint === "" ? "" : `"${endpoint}"`}]`;
      await expect.poll(() => env.kernel("IPv4"), { timeout: 10_000 }).toContain(held);
    }
    await expect.poll(contests, { timeout: 20_000 }).toHaveLength(2);
    expect(contests()).toMatchObject(
      ["blue", "green"].map((name) => ({
        metadata: { namespace: "shop" },
        type: "Warning",
        regarding: { kind: "Service", namespace: "shop", name },
        note: expect.stringMatching(
          `^192.0.2.10:80/TCP is also an external IP of Service shop/${name === "blue" ? "green" : "blue"}: `,
        ) as string,
      })),
    );
    applyBlueGreen(true, true);
    await expect.poll(() => env.kernel("IPv4")).toContain('"192.0.2.10:80","value":["10.1.1.1"]');
    env.stop.abort();
    expect((await done).code).toBe(0);
    server.abort();
    await served;
    expect(contests()).toHaveLength(2);
  },
  60_000,
);

it.each(["run", "serve"])(
  "R-07 R-55 R-64 R-70 what is left out of a Service and its slices is an event each at the Service, which kubectl describe finds: %s",
  async (reader) => {
    api.apply({ kind: "ServiceCIDR", metadata: { name: "kubernetes" }, spec: { cidrs: ["10.96.0.0/16"] } });
    const externalIPs = ["192.0.2.300", "198.51.100.9", "10.96.9.9"];
    const spec = { clusterIP: "10.96.0.30", ports: [{ port: 80 }], externalIPs, loadBalancerSourceRanges: ["192.0.2.0/33"] };
    api.apply({ kind: "Service", metadata: { namespace: "shop", name: "web" }, spec });
    const labels = { "kubernetes.io/service-name": "web" };
    const slice = { addressType: "IPv4", ports: [{ port: 80 }], endpoints: [{ addresses: ["fd00::1"] }] };
    api.apply({ kind: "EndpointSlice", metadata: { namespace: "shop", name: "web-1", labels }, ...slice });
    const serve = ["serve", "--listen", `unix://${env.directory}/node.sock`];
    const limits = ["--allowed-external-ip-cidrs", "10.96.0.0/16"];
    const done = env.run(...(reader === "serve" ? serve : RUN), "--kubeconfig", kubeconfig, ...limits);
    // Nobody asks that server for rows, and so it has no claims to settle.
    const claim = reader === "serve" ? [] : [/^Service port shop\/web:\/TCP: .*10\.96\.9\.9:80\/TCP is in the service range/];
    const expected = [
      /^EndpointSlice shop\/web-1: endpoint without a usable IPv4 address skipped: "fd00::1"; use IPv4/,
      ...claim,
      /^bad externalIP, it is left out: "192\.0\.2\.300"; use an IPv4 or IPv6 address$/,
      /^bad loadBalancerSourceRange.*"192\.0\.2\.0\/33"/,
      /^external IP outside the ranges allowed, it is left out: "198\.51\.100\.9"; use an address in/,
    ];
    const events = () => api.objects("Event").filter(({ reason }) => reason === "ServiceProblem");
    await expect.poll(() => events().length, { timeout: 20_000 }).toBe(expected.length);
    const notes = events().map(({ note }) => String(note));
    expect(notes.toSorted()).toEqual(expected.map((pattern) => expect.stringMatching(pattern) as string));
    const uid = api.objects("Service").find(({ metadata }) => metadata.name === "web")?.metadata.uid;
    const regarding = { kind: "Service", namespace: "shop", name: "web", uid };
    for (const event of events()) expect(event).toMatchObject({ metadata: { namespace: "shop" }, regarding });
    env.stop.abort();
    expect((await done).code).toBe(0);
  },
  60_000,
);

/** Who reads Services, how it is set to be strict, and whether it is. */
const STRICTNESS = [
  ["run", "nothing", false],
  ["run", "the flag", true],
  ["run", "the configuration file", true],
  ["serve", "nothing", false],
  ["serve", "the flag", true],
] as const;

/** Start a proxy that is strict by its flag, by its configuration file, or not; gives what ends it. */
async function startStrict(reader: "run" | "serve", by: string, field: string, flag: string): Promise<() => Promise<void>> {
  const ports = [await freePort(), await freePort()];
  const text = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: "${kubeconfig}"}
metricsBindAddress: "127.0.0.1:${ports[0]}"
healthzBindAddress: "127.0.0.1:${ports[1]}"
hostnameOverride: node1
turnout: {${field}: true}
`;
  const setting = by === "the flag" ? [flag] : by === "nothing" ? [] : ["--config", await env.file("strict.yaml", text)];
  const socket = `unix://${env.directory}/node.sock`;
  const isSplit = reader === "serve";
  const served = isSplit ? env.run("serve", "--kubeconfig", kubeconfig, "--listen", socket, ...setting) : undefined;
  const server = env.stop;
  const source = isSplit ? ["--source", `api:${socket}`, "--node-name", "node1"] : ["--kubeconfig", kubeconfig, ...setting];
  const done = env.run(...RUN, ...source, "--metrics-bind-address", "");
  return async () => {
    env.stop.abort();
    expect((await done).code).toBe(0);
    server.abort();
    await served;
  };
}

it.each(STRICTNESS)(
  "R-72 load-balancer IPs of a family without a source range, as %s is set by %s",
  async (reader, by, isStrict) => {
    const spec = {
      type: "LoadBalancer",
      clusterIP: "10.96.0.30",
      clusterIPs: ["10.96.0.30", "fd00:96::30"],
      ipFamilies: ["IPv4", "IPv6"],
      loadBalancerSourceRanges: ["203.0.113.0/24"],
      ports: [{ port: 80 }],
    };
    const status = { loadBalancer: { ingress: [{ ip: "198.51.100.7" }, { ip: "fd00:198::7" }] } };
    api.apply({ kind: "Service", metadata: { namespace: "shop", name: "web" }, spec, status });
    const end = await startStrict(reader, by, "strictSourceRanges", "--strict-source-ranges");
    await expect.poll(() => env.kernel("IPv6"), { timeout: 10_000 }).toContain("fd00:96::30");
    await expect.poll(() => env.kernel("IPv4"), { timeout: 10_000 }).toContain("198.51.100.7:80");
    expect((await env.kernel("IPv6")).includes("fd00:198::7")).toBe(!isStrict);
    const events = (): readonly unknown[] => api.objects("Event").filter(({ reason }) => reason === "FamilyWithoutSourceRanges");
    // An event of the cluster takes up to ten seconds: two cases wait for it.
    const isAwaited = (reader === "run") !== isStrict;
    await expect.poll(() => events().length, { timeout: 20_000 }).toBe(isAwaited ? 1 : 0);
    const what = `no loadBalancerSourceRanges of IPv6, these load-balancer IPs are ${isStrict ? "left out" : "open to all clients"}: "fd00:198::7"; add a range of IPv6`;
    const event = {
      type: "Warning",
      metadata: { namespace: "shop" },
      regarding: { kind: "Service", name: "web" },
      note: expect.stringContaining(what) as string,
    };
    expect(events()).toMatchObject(isAwaited ? [event] : []);
    await end();
  },
  60_000,
);

it.each(STRICTNESS)(
  "R-73 and R-74 external IPs in use, as %s is set by %s",
  async (reader, by, isStrict) => {
    const tenant = (name: string, ip: string, externalIP: string, port: number): void => {
      const spec = { clusterIP: ip, externalIPs: [externalIP], ports: [{ port }] };
      api.apply({ kind: "Service", metadata: { namespace: "evil", name, creationTimestamp: "2024-01-01T00:00:00Z" }, spec });
    };
    const serve = (namespace: string, name: string, address: string, port: number): void => {
      const metadata = {
        namespace,
        name: `${name}-1`,
        labels: { "kubernetes.io/service-name": name },
        creationTimestamp: "2024-02-01T00:00:00Z",
      };
      api.apply({
        kind: "EndpointSlice",
        metadata,
        addressType: "IPv4",
        ports: [{ name: "", port }],
        endpoints: [{ addresses: [address] }],
      });
    };
    serve("shop", "web", "10.9.9.9", 8080);
    serve("default", "kubernetes", "192.0.2.60", 6443);
    tenant("thief", "10.96.0.31", "10.9.9.9", 8080);
    tenant("api-thief", "10.96.0.32", "192.0.2.60", 6443);
    const end = await startStrict(reader, by, "strictExternalIPs", "--strict-external-ips");
    await expect.poll(() => env.kernel("IPv4"), { timeout: 10_000 }).toContain("10.96.0.32:6443");
    const kernel = await env.kernel("IPv4");
    expect(["10.9.9.9:8080", "192.0.2.60:6443"].map((place) => kernel.includes(place))).toEqual([!isStrict, false]);
    await end();
  },
  60_000,
);

it("a node-state server tells of no start, and counts its requests", async () => {
  const port = await freePort();
  const listen = ["--listen", `unix://${env.directory}/node.sock`];
  const done = env.run("serve", "--kubeconfig", kubeconfig, ...listen, "--metrics-bind-address", `127.0.0.1:${port}`);
  await expect.poll(() => answered(port)).toContain(`host="${new URL(api.url).host}"} 5`);
  expect(api.objects("Event")).toEqual([]);
  env.stop.abort();
  expect((await done).code).toBe(0);
});

import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import type { ServiceHealth } from "@turnout/core";
import { freePort, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { ServiceHealthServers } from "./service-health.ts";

let servers: ServiceHealthServers | undefined;
afterEach(async () => {
  await servers?.close();
  servers = undefined;
});

async function occupy(): Promise<Server> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

interface State {
  healthy?: boolean;
  addresses?: readonly string[] | Error;
  /** What the host has; absent: node ports answer on all of it. */
  host?: readonly string[];
}

const clock = new ToyClock();

function make(log: ToyLog, state: State = {}): ServiceHealthServers {
  servers = new ServiceHealthServers({
    family: "IPv4",
    clock,
    log,
    isProxyHealthy: () => state.healthy ?? true,
    addresses: () => {
      const { addresses = ["127.0.0.1"], host } = state;
      const isOnHost = host === undefined ? undefined : (ip: string): boolean => host.includes(ip);
      if (addresses instanceof Error) throw addresses;
      return { nodePorts: addresses, isOnHost };
    },
  });
  return servers;
}

/** One Service with a health check node port. */
function one(key: string, port: number, readyLocal: number, ...loadBalancerIPs: readonly string[]): ReadonlyMap<string, ServiceHealth> {
  return new Map([[key, { port, readyLocal, loadBalancerIPs }]]);
}

async function probe(port: number, ip = "127.0.0.1"): Promise<string> {
  try {
    const response = await fetch(`http://${ip}:${port}/any/path`);
    return `${response.status} weight ${response.headers.get("x-load-balancing-endpoint-weight") ?? ""}`;
  } catch {
    return "closed";
  }
}

test("ports open, follow their counts and the proxy's health, and close", async () => {
  const state = { healthy: true };
  const health = make(new ToyLog(), state);
  const port = await freePort();
  expect(await probe(port)).toBe("closed");
  await health.sync(one("shop/cart", port, 2));
  expect(await probe(port)).toBe("200 weight 2");
  await health.sync(one("shop/cart", port, 0));
  expect(await probe(port)).toBe("503 weight 0");
  await health.sync(one("shop/cart", port, 1));
  state.healthy = false;
  expect(await probe(port)).toBe("503 weight 1");
  await health.sync(new Map());
  expect(await probe(port)).toBe("closed");
});

test("a port that changed moves, also to another service", async () => {
  const health = make(new ToyLog());
  const [first, second] = [await freePort(), await freePort()];
  await health.sync(one("shop/cart", first, 1));
  await health.sync(one("shop/cart", second, 1));
  expect([await probe(first), await probe(second)]).toEqual(["closed", "200 weight 1"]);
  await health.sync(one("shop/other", second, 3));
  expect(await probe(second)).toBe("200 weight 3");
});

test("a port in use is reported once, does not stop others, and is tried at the next sync", async () => {
  const log = new ToyLog();
  const health = make(log);
  const taken = await occupy();
  const free = await freePort();
  const wanted = new Map([
    ["shop/taken", { port: portOf(taken), readyLocal: 1, loadBalancerIPs: [] }],
    ["shop/free", { port: free, readyLocal: 1, loadBalancerIPs: [] }],
  ]);
  await health.sync(wanted);
  await health.sync(wanted);
  expect(await probe(free)).toBe("200 weight 1");
  expect(log.lines.filter((line) => line.includes("shop/taken"))).toHaveLength(1);
  taken.close();
  await once(taken, "close");
  await health.sync(wanted);
  expect(await probe(wanted.get("shop/taken")?.port ?? 0)).toBe("200 weight 1");
});

test("each address is opened and closed on its own: one that can't be bound leaves the others, and is tried again without a sync", async () => {
  const state: State = { addresses: ["127.0.0.1", "192.0.2.1"] };
  const health = make(new ToyLog(), state);
  const port = await freePort();
  await health.sync(one("shop/cart", port, 1));
  expect(await probe(port)).toBe("200 weight 1");
  state.addresses = ["127.0.0.1", "127.0.0.2"];
  await clock.advance(5_000);
  expect([await probe(port), await probe(port, "127.0.0.2")]).toEqual(["200 weight 1", "200 weight 1"]);
  state.addresses = ["127.0.0.2"];
  await health.sync(one("shop/cart", port, 1));
  expect([await probe(port), await probe(port, "127.0.0.2")]).toEqual(["closed", "200 weight 1"]);
});

test("R-51 a Service's port answers at those of its load-balancer IPs that the host has, as they come and go, and no other Service's does", async () => {
  const log = new ToyLog();
  const state: State = { addresses: ["127.0.0.1"], host: ["127.0.0.1"] };
  const health = make(log, state);
  const [port, other] = [await freePort(), await freePort()];
  const wanted = new Map([...one("shop/cart", port, 2, "127.0.0.7"), ...one("shop/web", other, 1)]);
  const probes = (): Promise<readonly string[]> => Promise.all([probe(port), probe(port, "127.0.0.7"), probe(other, "127.0.0.7")]);
  await health.sync(wanted);
  expect(await probes()).toEqual(["200 weight 2", "closed", "closed"]);
  state.host = ["127.0.0.1", "127.0.0.7"];
  await clock.advance(5_000);
  expect(await probes()).toEqual(["200 weight 2", "200 weight 2", "closed"]);
  state.host = ["127.0.0.1"];
  await health.sync(wanted);
  expect(await probes()).toEqual(["200 weight 2", "closed", "closed"]);
  // An address that the host does not have is no failure.
  expect(log.lines).toEqual([]);
});

test.each([
  ["no address is chosen", []],
  ["addresses can't be read", new Error("netlink is away")],
])("%s: reported, tried again", async (_name, addresses) => {
  const log = new ToyLog();
  const state: State = { addresses };
  const health = make(log, state);
  const port = await freePort();
  const wanted = one("shop/cart", port, 1);
  await health.sync(wanted);
  expect(log.lines.some((line) => line.includes("no address of this host is chosen"))).toBe(true);
  state.addresses = ["127.0.0.1"];
  await health.sync(wanted);
  expect(await probe(port)).toBe("200 weight 1");
});

test("after close nothing opens again", async () => {
  const health = make(new ToyLog());
  const port = await freePort();
  await health.close();
  await health.sync(one("shop/cart", port, 1));
  expect(await probe(port)).toBe("closed");
});

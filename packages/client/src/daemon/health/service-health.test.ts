import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
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

function make(log: ToyLog, state: { healthy?: boolean; addresses?: readonly string[] | Error } = {}): ServiceHealthServers {
  servers = new ServiceHealthServers({
    family: "IPv4",
    clock: new ToyClock(),
    log,
    isProxyHealthy: () => state.healthy ?? true,
    addresses: () =>
      state.addresses instanceof Error ? Promise.reject(state.addresses) : Promise.resolve(state.addresses ?? ["127.0.0.1"]),
  });
  return servers;
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
  await health.sync(new Map([["shop/cart", { port, readyLocal: 2 }]]));
  expect(await probe(port)).toBe("200 weight 2");
  await health.sync(new Map([["shop/cart", { port, readyLocal: 0 }]]));
  expect(await probe(port)).toBe("503 weight 0");
  await health.sync(new Map([["shop/cart", { port, readyLocal: 1 }]]));
  state.healthy = false;
  expect(await probe(port)).toBe("503 weight 1");
  await health.sync(new Map());
  expect(await probe(port)).toBe("closed");
});

test("a port that changed moves, also to another service", async () => {
  const health = make(new ToyLog());
  const [first, second] = [await freePort(), await freePort()];
  await health.sync(new Map([["shop/cart", { port: first, readyLocal: 1 }]]));
  await health.sync(new Map([["shop/cart", { port: second, readyLocal: 1 }]]));
  expect([await probe(first), await probe(second)]).toEqual(["closed", "200 weight 1"]);
  await health.sync(new Map([["shop/other", { port: second, readyLocal: 3 }]]));
  expect(await probe(second)).toBe("200 weight 3");
});

test("a port in use is reported once, does not stop others, and is tried at the next sync", async () => {
  const log = new ToyLog();
  const health = make(log);
  const taken = await occupy();
  const free = await freePort();
  const wanted = new Map([
    ["shop/taken", { port: portOf(taken), readyLocal: 1 }],
    ["shop/free", { port: free, readyLocal: 1 }],
  ]);
  await health.sync(wanted);
  await health.sync(wanted);
  expect(await probe(free)).toBe("200 weight 1");
  expect(health.hasFailures).toBe(true);
  expect(log.lines.filter((line) => line.includes("shop/taken"))).toHaveLength(1);
  taken.close();
  await once(taken, "close");
  await health.sync(wanted);
  expect(health.hasFailures).toBe(false);
  expect(await probe(wanted.get("shop/taken")?.port ?? 0)).toBe("200 weight 1");
});

test("listening is all or nothing: one bad address closes the good ones", async () => {
  const state: { addresses: readonly string[] } = { addresses: ["127.0.0.1", "192.0.2.1"] };
  const health = make(new ToyLog(), state);
  const port = await freePort();
  const wanted = new Map([["shop/cart", { port, readyLocal: 1 }]]);
  await health.sync(wanted);
  expect(await probe(port)).toBe("closed");
  state.addresses = ["127.0.0.1", "127.0.0.2"];
  await health.sync(wanted);
  expect([await probe(port), await probe(port, "127.0.0.2")]).toEqual(["200 weight 1", "200 weight 1"]);
  state.addresses = ["127.0.0.2"];
  await health.sync(wanted);
  expect([await probe(port), await probe(port, "127.0.0.2")]).toEqual(["closed", "200 weight 1"]);
});

test.each([
  ["no address is chosen", []],
  ["addresses can't be read", new Error("netlink is away")],
])("%s: reported, tried again", async (_name, addresses) => {
  const log = new ToyLog();
  const state: { addresses: readonly string[] | Error } = { addresses };
  const health = make(log, state);
  const port = await freePort();
  const wanted = new Map([["shop/cart", { port, readyLocal: 1 }]]);
  await health.sync(wanted);
  expect(health.hasFailures).toBe(true);
  expect(log.lines.some((line) => line.includes("no address of this host is chosen"))).toBe(true);
  state.addresses = ["127.0.0.1"];
  await health.sync(wanted);
  expect(await probe(port)).toBe("200 weight 1");
});

test("after close nothing opens again", async () => {
  const health = make(new ToyLog());
  const port = await freePort();
  await health.close();
  await health.sync(new Map([["shop/cart", { port, readyLocal: 1 }]]));
  expect(await probe(port)).toBe("closed");
});

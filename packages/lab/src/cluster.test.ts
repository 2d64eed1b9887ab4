import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "./cluster.ts";
import { createCluster } from "./cluster.ts";
import { startClusterApi } from "./cluster-api.ts";
import { nodeManifests } from "./manifests.ts";
import { namespaceNames, ownerOf } from "./namespaces.ts";
import { sweepLeftovers } from "./sweep.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const TRANSPORTS = ["TCP", "UDP", "HTTP", "SCTP"] as const;

function namespacesOf(pid: number | undefined): readonly string[] {
  return namespaceNames().filter((name) => ownerOf(name)?.pid === pid);
}

describe("a cluster", needs("root", "ip", "nft"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await createCluster({
      nodes: [
        { name: "node1", zone: "a", pods: 2 },
        { name: "node2", pods: 1 },
      ],
      clients: 1,
    });
    const server = cluster.place("pod-2-1").agent();
    for (const transport of TRANSPORTS) await server.serve({ name: "server", transport, port: transport === "HTTP" ? 8080 : 80 });
    // What a service proxy does to packets it refuses or drops, on the server's node.
    const input = "table inet t {\n chain f {\n type filter hook forward priority 0;\n th dport 85 drop\n th dport 86 reject\n }\n}\n";
    await cluster.node("node2").run("nft", ["-f", "-"], { input });
  });
  afterAll(() => cluster?.destroy());

  const cases = ["pod-1-1", "client1", "node1", "node2", "fabric", "pod-2-1"].flatMap((from) =>
    FAMILIES.flatMap((family) => TRANSPORTS.map((transport) => ({ from, family, transport }))),
  );
  it.each(cases)("carries $transport over $family from $from to a pod, source address kept", async ({ from, family, transport }) => {
    const place = cluster.place(from);
    const request = { address: cluster.place("pod-2-1").address(family), port: transport === "HTTP" ? 8080 : 80, transport };
    expect(await place.agent().attempt(request)).toMatchObject({ outcome: "ok", server: "server", client: place.address(family), family });
  });

  const failures = FAMILIES.flatMap((family) =>
    (["TCP", "UDP", "SCTP"] as const).flatMap((transport) => [
      { family, transport, port: 85, outcome: "timeout", what: "dropped" },
      { family, transport, port: 86, outcome: "refused", what: "rejected" },
    ]),
  );
  it.concurrent.each(failures)("tells $what $transport over $family", async ({ family, transport, port, outcome }) => {
    const agent = cluster.place("pod-1-1").agent();
    expect(await agent.attempt({ address: cluster.place("pod-2-1").address(family), port, transport, timeoutMs: 1_500 })).toMatchObject({
      outcome,
    });
  });

  it("tells a port nobody listens on, and an address nobody has", async () => {
    const agent = cluster.place("pod-1-1").agent();
    expect(await agent.attempt({ address: cluster.place("pod-2-1").address("IPv4"), port: 81 })).toMatchObject({ outcome: "refused" });
    expect(await agent.attempt({ address: "10.96.0.1", port: 80 })).toMatchObject({ outcome: "unreachable" });
  });

  it("keeps a flow when the source port is fixed", async () => {
    const agent = cluster.place("pod-1-1").agent();
    for (const transport of ["UDP", "TCP", "SCTP"] as const) {
      const request = { address: cluster.place("pod-2-1").address("IPv4"), port: 80, transport, fromPort: 40_001 };
      expect(await agent.attempt(request)).toMatchObject({ outcome: "ok", clientPort: 40_001 });
    }
  });

  it("refuses what is the caller's mistake instead of calling it an outcome", async () => {
    const request = { address: cluster.place("pod-2-1").address("IPv4"), port: 80, fromAddress: "192.0.2.1" };
    await expect(cluster.place("pod-1-1").agent().attempt(request)).rejects.toThrow("EADDRNOTAVAIL");
  });

  it("sees load go from well to reset and refused when its server goes", async () => {
    const server = cluster.place("pod-1-2").agent();
    const client = cluster.place("client1").agent();
    await server.serve({ name: "short-lived", transport: "TCP", port: 90 });
    const target = { address: cluster.place("pod-1-2").address("IPv4"), port: 90 };
    const held = await client.hold({ ...target, everyMs: 5 });
    const load = await client.startLoad(target);
    await expect.poll(async () => (await client.peekLoad(load)).ok).toBeGreaterThan(50);
    await expect.poll(async () => (await client.holdStatus(held)).answers).toBeGreaterThan(3);
    expect((await client.peekLoad(load)).failed).toEqual({});
    await server.stop({ transport: "TCP", port: 90, how: "reset" });
    await expect.poll(async () => (await client.peekLoad(load)).failed.refused).toBeGreaterThan(0);
    await expect.poll(async () => (await client.release(held)).state).toBe("reset");
    await client.stopLoad(load);
  });

  it("keeps a UDP socket, and sees the kernel end it", async () => {
    const agent = cluster.place("pod-1-1").agent();
    const server = cluster.place("pod-2-1").address("IPv4");
    const held = await agent.hold({ address: server, port: 80, transport: "UDP", fromPort: 40_002, everyMs: 5 });
    expect(await agent.holdStatus(held)).toMatchObject({
      state: "open",
      server: "server",
      client: cluster.place("pod-1-1").address("IPv4"),
    });
    const { answers } = await agent.holdStatus(held);
    await expect.poll(async () => (await agent.holdStatus(held)).answers).toBeGreaterThan(answers + 2);
    await cluster.place("pod-1-1").run("ss", ["-K", "-u", "sport", "=", ":40002"]);
    await expect.poll(async () => (await agent.release(held)).state).toBe("reset");
    await expect(agent.hold({ address: server, port: 81, transport: "UDP", everyMs: 5 })).rejects.toThrow("opening a connection to keep");
  });

  it("lets open connections finish when a server drains", async () => {
    const server = cluster.place("pod-1-2").agent();
    const client = cluster.place("pod-1-1").agent();
    await server.serve({ name: "draining", transport: "TCP", port: 91 });
    const target = { address: cluster.place("pod-1-2").address("IPv6"), port: 91 };
    const held = await client.hold({ ...target, everyMs: 5 });
    await server.stop({ transport: "TCP", port: 91, how: "drain" });
    expect(await client.attempt(target)).toMatchObject({ outcome: "refused" });
    const { answers } = await client.holdStatus(held);
    await expect.poll(async () => (await client.holdStatus(held)).answers).toBeGreaterThan(answers + 2);
    expect(await client.release(held)).toMatchObject({ state: "open", server: "draining" });
  });

  it("has an API server that nodes reach and that can go away", async () => {
    const api = await startClusterApi(cluster);
    await api.apply(nodeManifests(cluster));
    const get = { address: "172.18.0.254", port: 6443, path: "/api/v1/nodes" };
    const node = cluster.place("node2").agent();
    const { status, body } = await node.get(get);
    expect([status, (JSON.parse(body) as { items: { metadata: { name: string } }[] }).items.map((item) => item.metadata.name)]).toEqual([
      200,
      ["node1", "node2"],
    ]);
    await api.pause();
    expect(await node.get(get)).toMatchObject({ outcome: "refused", status: 0 });
    await api.resume();
    expect(await node.get(get)).toMatchObject({ status: 200 });
    api.close();
  });

  it("routes the external range to the node it is told to", async () => {
    await cluster.node("node2").run("ip", ["address", "add", "198.51.100.7/32", "dev", "lo"]);
    await cluster.node("node2").agent().serve({ name: "node2", transport: "TCP", port: 92 });
    await cluster.routeTo("198.51.100.7", "node2");
    expect(await cluster.place("client1").agent().attempt({ address: "198.51.100.7", port: 92 })).toMatchObject({
      outcome: "ok",
      server: "node2",
    });
  });
});

describe("taking a cluster down", needs("root", "ip"), () => {
  const SHAPE = { nodes: [{ name: "node1", pods: 1 }] };

  it("removes every namespace and every process in them", async () => {
    const before = namespacesOf(process.pid);
    const cluster = await createCluster(SHAPE);
    const sleeper = cluster.place("pod-1-1").spawn("sleep", ["1000"]);
    const ended = new Promise((resolve) => sleeper.on("exit", (_, signal) => resolve(signal)));
    expect(namespacesOf(process.pid).length).toBe(before.length + 4);
    cluster.destroy();
    cluster.destroy();
    expect(await ended).toBe("SIGKILL");
    expect(namespacesOf(process.pid)).toEqual(before);
  });

  it("leaves no process behind that was being started", async () => {
    for (let round = 0; round < 4; round += 1) {
      const cluster = await createCluster(SHAPE);
      // Each has come further when the cluster goes: before `ip` was loaded, while it was, inside the namespace.
      const sleepers = Array.from({ length: 8 }, () => cluster.place("pod-1-1").spawn("sleep", ["1000"]));
      const ends = sleepers.map((sleeper) => new Promise((resolve) => sleeper.on("exit", (code, signal) => resolve(signal ?? code))));
      cluster.destroy();
      for (const end of await Promise.all(ends)) expect(["SIGKILL", 1, 255]).toContain(end);
    }
  });

  it("happens when building is aborted half-way, too", async () => {
    const before = namespacesOf(process.pid);
    const abort = new AbortController();
    const building = createCluster({ nodes: [{ name: "node1", pods: 20 }], signal: abort.signal });
    setImmediate(() => abort.abort());
    await expect(building).rejects.toThrow("[canceled]");
    expect(namespacesOf(process.pid)).toEqual(before);
  });

  it.each(["SIGTERM", "SIGKILL"] as const)("happens when its process gets %s", async (signal) => {
    const index = fileURLToPath(new URL("./index.ts", import.meta.url));
    const program = `const { createCluster } = await import(${JSON.stringify(index)}); await createCluster(${JSON.stringify(SHAPE)}); console.log("up"); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--conditions=@turnout/source", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    expect(namespacesOf(child.pid)).toHaveLength(4);
    const ended = new Promise((resolve) => child.on("exit", (_, by) => resolve(by)));
    child.kill(signal);
    expect(await ended).toBe(signal);
    // Nobody outlives SIGKILL to clean up: the next to build a cluster does, here or in another test's process.
    if (signal === "SIGKILL") sweepLeftovers();
    expect(namespacesOf(child.pid)).toEqual([]);
  });
});

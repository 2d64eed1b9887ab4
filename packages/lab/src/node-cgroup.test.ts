import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCluster } from "./cluster.ts";
import type { Cluster } from "./cluster.ts";
import { ownerOf } from "./namespaces.ts";
import { cgroupNames } from "./node-cgroup.ts";
import { sweepLeftovers } from "./sweep.ts";

const NODES = [1, 2].map((node) => ({ name: `node${node}`, pods: 1 }));

function cgroupsOf(pid: number | undefined): readonly string[] {
  return cgroupNames().filter((name) => ownerOf(name)?.pid === pid);
}

/** The first line comes again. */
function isRepeated([first = "", ...others]: readonly string[]): boolean {
  return others.includes(first);
}

describe("nodes with a cgroup of their own", needs("root", "ip", "cgroup2", "nsenter", "unshare"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await createCluster({ nodes: [...NODES, { name: "node3", pods: 0 }], clients: 1, cgroups: ["node1", "node2"] });
  });
  afterAll(() => cluster?.destroy());

  const output = async (place: string, command: string): Promise<string> =>
    (await cluster.place(place).run("sh", ["-c", command])).stdout.trim();
  const cgroupOf = (place: string): Promise<string> => output(place, "sed -n s/^0:://p /proc/self/cgroup");

  it("are in it with their pods, however a process is started, and nobody else is", async () => {
    const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
    const of = async (...places: readonly string[]): Promise<readonly string[]> => Promise.all(places.map(cgroupOf));
    const [node1 = "", pod1, node2 = "", pod2, ...others] = await of("node1", "pod-1-1", "node2", "pod-2-1", "node3", "client1", "fabric");
    expect([pod1, pod2]).toEqual([node1, node2]);
    expect(new Set([node1, node2, own]).size).toBe(3);
    expect(others).toEqual([own, own, own]);
    expect(cgroupsOf(process.pid).map((name) => name.slice(-5))).toEqual(expect.arrayContaining(["node1", "node2"]));
    const pid = cluster.place("pod-2-1").agent().pid ?? 0;
    await expect.poll(() => /^0::(.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, "utf8"))?.[1]).toBe(node2);
  });

  it("find it as the root of cgroups, and a bpffs that they share with their pods alone", async () => {
    // What lies over the others was mounted last.
    const [target = "", folder] = (await output("node1", "findmnt -ln -o TARGET,FSROOT -t cgroup2 | tail -n 1")).split(/ +/);
    expect(folder).toBe(await cgroupOf("node1"));
    expect((await output("node1", `echo $$; cat ${target}/cgroup.procs`)).split("\n")).toSatisfy(isRepeated);
    await output("node1", "mkdir /sys/fs/bpf/mine");
    const listings = await Promise.all(["pod-1-1", "node2", "pod-2-1", "node3"].map((place) => output(place, "ls /sys/fs/bpf")));
    expect(listings.map((listing) => listing.split("\n").includes("mine"))).toEqual([true, false, false, false]);
  });

  it("go with the cgroups below them, and with what runs there", async () => {
    const mine = await createCluster({ nodes: [{ name: "node1", pods: 0 }], clients: 0, cgroups: ["node1"] });
    const { namespace } = mine.node("node1");
    const script =
      'cd "$(findmnt -ln -o TARGET -t cgroup2 | tail -n 1)" && mkdir -p a/b && echo $$ >a/b/cgroup.procs && echo ready && exec sleep 1000';
    const sleeper = mine.node("node1").spawn("sh", ["-c", script]);
    await new Promise((resolve) => sleeper.stdout?.once("data", resolve));
    mine.destroy();
    expect(cgroupNames()).not.toContain(namespace);
  });

  it("have a network of their own all the same", async () => {
    expect(await output("pod-1-1", "ip -4 -o addr show dev eth0")).toContain(cluster.place("pod-1-1").address("IPv4"));
  });
});

describe("taking down a node's cgroup", needs("root", "ip", "cgroup2", "nsenter", "unshare"), () => {
  it("ends every process in it, and happens twice", async () => {
    const before = cgroupsOf(process.pid);
    const cluster = await createCluster({ nodes: NODES, cgroups: ["node1"] });
    expect(cgroupsOf(process.pid)).toHaveLength(before.length + 1);
    // It has left the node's network: that alone would not end it.
    const sleeper = cluster.place("node1").spawn("nsenter", [`--net=/proc/${process.pid}/ns/net`, "sleep", "1000"]);
    const ended = new Promise((resolve) => sleeper.on("exit", (_, signal) => resolve(signal)));
    await expect.poll(() => readFileSync(`/proc/${sleeper.pid}/comm`, "utf8")).toBe("sleep\n");
    cluster.destroy();
    cluster.destroy();
    expect(await ended).toBe("SIGKILL");
    expect(cgroupsOf(process.pid)).toEqual(before);
  });

  it.each(["SIGTERM", "SIGKILL"] as const)("happens when the process that made it gets %s", async (signal) => {
    const index = fileURLToPath(new URL("./index.ts", import.meta.url));
    const options = JSON.stringify({ nodes: NODES, cgroups: ["node1"] });
    const program = `const { createCluster } = await import(${JSON.stringify(index)}); await createCluster(${options}); console.log("up"); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--conditions=@turnout/source", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    expect(cgroupsOf(child.pid)).toHaveLength(1);
    const ended = new Promise((resolve) => child.on("exit", (_, by) => resolve(by)));
    child.kill(signal);
    expect(await ended).toBe(signal);
    // Nobody outlives SIGKILL to clean up: the next to build a cluster does.
    if (signal === "SIGKILL") sweepLeftovers();
    expect(cgroupsOf(child.pid)).toEqual([]);
  });
});

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import type { Exec } from "@turnout/core";
import { createExec } from "@turnout/host";
import type { Layout } from "../layouts.ts";
import { openRole, placedCommand, runRole } from "../role-process.ts";
import { createStore, createSubject, createView, fillStore } from "../subject.ts";
import { clusterIP, endpointsOf, SERVICE_PORT, TARGET_PORT } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { baseline } from "./baseline.ts";
import type { ConnectTarget } from "./connect-ends.ts";
import { firstSync } from "./cold-start.ts";

/** Which rules the node has, and how many connects are timed to each target. */
export interface ConnectParameters {
  readonly shape: Shape;
  readonly rules: "turnout" | "none" | Layout;
  readonly count: number;
}

/** Connect times in ms: to an endpoint itself, and over the first and the last service. */
export type ConnectTimes = Readonly<Record<string, readonly number[]>>;

/** A client (a pod of this node by its address) and a server, each a veth away from this namespace, the node. */
const CLIENT = { link: "client0", gateway: "11.255.0.1/24", addresses: ["11.255.0.2/24"], route: "11.255.0.1" };

/** Time connects from a client over this node to a server. */
export async function connect({ shape, rules, count }: ConnectParameters): Promise<ConnectTimes> {
  const exec = createExec();
  const shared: Shape = { ...shape, shared: true };
  const pods = endpointsOf(0, shared).map(({ ip }) => ip);
  const server = { link: "server0", gateway: "11.0.0.254/24", addresses: pods.map((ip) => `${ip}/24`), route: "11.0.0.254" };
  await writeFile("/proc/sys/net/ipv4/ip_forward", "1");
  const ends = [await holdNamespace(), await holdNamespace()] as const;
  try {
    const [clientPid = 0, serverPid = 0] = ends.map(({ pid }) => pid);
    await joinNamespace(exec, clientPid, CLIENT);
    await joinNamespace(exec, serverPid, server);
    await loadRules(rules, shared);
    const listener = openRole("connect-server", {}, { namespace: { pid: serverPid } });
    try {
      await listener.phase("listening");
      const targets: ConnectTarget[] = [{ name: "direct", address: pods[0] ?? "", port: TARGET_PORT }];
      if (rules !== "none") {
        targets.push({ name: "first", address: clusterIP(0), port: SERVICE_PORT });
        targets.push({ name: "last", address: clusterIP(shape.services - 1), port: SERVICE_PORT });
      }
      return await runRole<ConnectTimes>("connect-client", { targets, count }, { namespace: { pid: clientPid } });
    } finally {
      listener.kill();
    }
  } finally {
    for (const end of ends) end.kill();
  }
}

async function loadRules(rules: ConnectParameters["rules"], shape: Shape): Promise<void> {
  if (rules === "none") return;
  if (rules !== "turnout") {
    await baseline({ layout: rules, shape, changes: 0 });
    return;
  }
  const store = createStore();
  const subject = await createSubject(createView(store));
  await fillStore(store, shape);
  await firstSync(subject);
  await subject.close();
}

/** Make a namespace that lives until this process ends: cat ends with its stdin. */
async function holdNamespace(): Promise<ChildProcess> {
  const [file = "", ...args] = placedCommand(["cat"], { namespace: "fresh" });
  const holder = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
  holder.stdin.write("here\n");
  // What it echoes comes from inside: unshare is done.
  await new Promise((resolve, reject) => {
    holder.stdout.once("data", resolve);
    holder.once("error", reject);
    holder.once("exit", () => reject(new Error("a network namespace could not be made")));
  });
  return holder;
}

async function joinNamespace(exec: Exec, pid: number, end: typeof CLIENT): Promise<void> {
  await runIp(
    exec,
    [],
    [`link add ${end.link} type veth peer name eth0 netns ${pid}`, `address add ${end.gateway} dev ${end.link}`, `link set ${end.link} up`],
  );
  await runIp(
    exec,
    ["nsenter", `--net=/proc/${pid}/ns/net`],
    [
      ...end.addresses.map((address) => `address add ${address} dev eth0`),
      "link set lo up",
      "link set eth0 up",
      `route add default via ${end.route}`,
    ],
  );
}

async function runIp(exec: Exec, prefix: readonly string[], lines: readonly string[]): Promise<void> {
  const [file = "", ...args] = prefix.concat("ip", "-batch", "-");
  const { code, stderr } = await exec.run(file, args, { input: `${lines.join("\n")}\n` });
  if (code !== 0) throw new Error(`ip failed: ${stderr}`);
}

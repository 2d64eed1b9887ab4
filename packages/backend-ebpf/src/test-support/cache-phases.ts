// A cache that listens on the host at a Service's cluster IP, as NodeLocal DNSCache does.
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceFixture } from "@turnout/core/testing";
import { encodeAddress } from "../bytes/layout.ts";
import type { Calls } from "./agent.ts";
import { at, listenAt } from "./clients.ts";
import type { Question } from "./clients.ts";
import type { Daemon } from "./daemon.ts";
import { elements } from "./module-scene.ts";
import { run } from "./network.ts";
import { atAll } from "./packet-services.ts";

const CLUSTER_IPS = ["10.96.0.2", "fd00:96::2"];
/** The host has these too, as some cloud agents and load balancers want it; they are the Service's, whatever listens. */
const OTHERS = ["198.51.100.53", "198.51.100.54"];

const ONE_IP = { clusterIP: CLUSTER_IPS[0] ?? "", clusterIPs: CLUSTER_IPS };

/** DNS by both protocols, and a port that the cache doesn't serve. */
export const CACHED: readonly ServiceFixture[] = [
  {
    name: "dns",
    number: 2,
    local: 1,
    protocol: "UDP",
    spec: { ...ONE_IP, type: "LoadBalancer", externalIPs: OTHERS.slice(0, 1) },
    loadBalancerIPs: OTHERS.slice(1),
  },
  { name: "dns-tcp", number: 2, local: 1, spec: ONE_IP },
  { name: "dns-metrics", number: 2, local: 1, spec: { ...ONE_IP, ports: [{ name: "main", port: 9153, protocol: "TCP" }] } },
];

/** Where it is asked; the last by the same UDP flow each time. */
const QUESTIONS = [
  ...atAll(CLUSTER_IPS),
  ...CLUSTER_IPS.map((address) => at("sendto", address)),
  { ...at("sendto", "10.96.0.2"), fromPort: 40_002 },
];
const NEVER_CACHED = [at("tcp", "10.96.0.2", 9153), ...OTHERS.map((address) => at("udp", address))];

/** Whoever asks. */
type Asking = Readonly<Record<string, Pick<Calls, "askAll">>>;

/**
 * What is heard while the addresses come, the cache listens, goes and comes back, and the addresses go: by those that ask, each answer once, at the
 * ports of the cache and elsewhere. The daemon is stopped.
 */
export async function cachePhases(daemon: Daemon, asking: Asking): Promise<unknown> {
  await daemon.want(CACHED);
  const seen: unknown[] = [await heard(asking)];
  // NodeLocal DNSCache has a dummy device, which not every kernel has.
  run("ip", ["link", "add", "nodelocaldns", "type", "veth", "peer", "name", "nodelocalend"]);
  for (const address of [...CLUSTER_IPS, ...OTHERS]) run("ip", ["addr", "add", address, "dev", "nodelocaldns", ...nodad(address)]);
  run("ip", ["link", "set", "nodelocaldns", "up"]);
  await untilKnown(true);
  seen.push(await heard(asking));
  for (let times = 0; times < 2; times += 1) {
    const stop = await listenAt([...CLUSTER_IPS, ...OTHERS], 80, () => "cache");
    seen.push(await heard(asking));
    // Whether the Service has endpoints is nothing to the cache.
    await daemon.want(CACHED.map((fixture) => ({ ...fixture, local: 0 })));
    seen.push(await heardOf(asking, QUESTIONS));
    await daemon.want(CACHED);
    stop();
    seen.push(await heard(asking));
  }
  run("ip", ["link", "del", "nodelocaldns"]);
  await untilKnown(false);
  seen.push(await heard(asking));
  await daemon.stop();
  return seen;
}

function nodad(address: string): readonly string[] {
  return address.includes(":") ? ["nodad"] : [];
}

async function heard(asking: Asking): Promise<unknown> {
  const answers: Record<string, unknown> = {};
  for (const [who, { askAll }] of Object.entries(asking))
    answers[who] = [await distinct(askAll(QUESTIONS)), await distinct(askAll(NEVER_CACHED))];
  return answers;
}

async function heardOf(asking: Asking, questions: readonly Question[]): Promise<unknown> {
  const answers = Object.entries(asking).map(async ([who, { askAll }]) => [who, await distinct(askAll(questions))] as const);
  return Object.fromEntries(await Promise.all(answers));
}

/** What was said, each once. */
async function distinct(answers: Promise<readonly string[]>): Promise<string> {
  const said = (await answers).map((answer) => answer.replace(/^.* says /, "").replace(/ to .*/, ""));
  return [...new Set(said)].toSorted().join(" ");
}

/** Wait until the programs know that the host has the cluster IPs, or hasn't. */
async function untilKnown(isThere: boolean): Promise<void> {
  const keys = CLUSTER_IPS.map((address) => encodeAddress(address).toString("hex"));
  for (let left = 200; left > 0; left -= 1) {
    const known = (await elements("node_addresses")).join("\n");
    if (keys.every((key) => known.includes(key) === isThere)) return;
    await sleep(50);
  }
}

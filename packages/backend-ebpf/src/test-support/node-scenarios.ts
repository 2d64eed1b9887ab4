// What node-kernel.test.ts has tried. This network namespace is a node that the module serves, with a client
// outside and pods that no hook of a cgroup sees.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceFixture } from "@turnout/core/testing";
import { FILTER } from "../attach/attached.ts";
import { STRUCTS } from "../bytes/layout.ts";
import { hostPinFiles } from "../pins/pin-files.ts";
import type { Calls } from "./agent.ts";
import { startAgents } from "./agents.ts";
import { CACHED, cachePhases } from "./cache-phases.ts";
import { askAll, at } from "./clients.ts";
import { Daemon } from "./daemon.ts";
import type { DaemonOptions } from "./daemon.ts";
import { CHANGED, endsAs, killings, MANY, runToEnd, UDP } from "./killings.ts";
import { bpf, elements, map, pinned, ROOT, SCRATCH } from "./module-scene.ts";
import { makeNetwork, NODE, POD, POD_ENDPOINTS, run } from "./network.ts";
import { place } from "./place.ts";
import { atAll, ofBoth, OUTER, PATIENCE_MS, PLAIN } from "./packet-services.ts";

const { cgroup } = place;

const OUTSIDE: readonly ServiceFixture[] = ofBoth({ ...PLAIN, spec: OUTER, loadBalancerIPs: ["198.51.100.2", "fd00:51::2"] });
/** Those of {@link OUTSIDE}: an external address, a load-balancer IP, a node port. */
const QUESTIONS = [...atAll(["198.51.100.5", "fd00:51::5", "198.51.100.2", "fd00:51::2"]), ...atAll([NODE.IPv4, NODE.IPv6], 30_005)];

async function furnishNode(): Promise<{ readonly client: Calls; readonly pod: Calls }> {
  makeNetwork();
  run("mount", ["-t", "bpf", "bpf", "/sys/fs/bpf"]);
  run("mount", ["-t", "tmpfs", "tmpfs", SCRATCH]);
  mkdirSync(cgroup);
  const [client, pod, pods] = await startAgents(["client", "pod", "pods"]);
  await pods.serve(POD_ENDPOINTS);
  await pod.serve([POD.IPv4, POD.IPv6]);
  return { client, pod };
}

/** Devices with our programs, by what is pinned: `outside ingress turnout_in`. */
function carriers(): readonly string[] {
  const devices = JSON.parse(run("ip", ["-j", "link"])) as readonly { readonly ifname: string; readonly ifindex: number }[];
  const pins = bpf.pins(ROOT);
  const nameOf = (id: number): string =>
    pins.flatMap((pin) => (pin.kind === "program" && pin.info.id === id ? [pin.info.name] : []))[0] ?? "";
  return pins
    .flatMap((pin) => {
      if (pin.kind !== "link" || pin.info.kind !== "tcx") return [];
      const { ifindex, direction, programId } = pin.info;
      return [`${devices.find((one) => one.ifindex === ifindex)?.ifname} ${direction} ${nameOf(programId)}`];
    })
    .toSorted();
}

/** A datagram under way is lost when its flow is forgotten, as that of an endpoint that goes is: so the one that is asked keeps both. */
const CHANGED_BUT_UDP = CHANGED.map((fixture) => (fixture.name === UDP.name ? UDP : fixture));

/** How long it takes until this is so, in ms; at most 15 s. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<number> {
  const since = performance.now();
  while (!(await isSo()) && performance.now() - since < 15_000) await sleep(5);
  return performance.now() - since;
}

/** Processes are killed, each at another change of the kernel, while a client outside asks all the time. */
async function killed(
  steps: readonly number[],
  fixtures: readonly ServiceFixture[],
  options: DaemonOptions["options"] = {},
): Promise<unknown> {
  const { client } = await furnishNode();
  await runToEnd(place, MANY);
  await client.startLoad("10.96.0.1", "10.96.0.2");
  const result = await killings(place, fixtures, steps, options);
  const { failures, connections, datagrams } = await client.endLoad();
  return { ...result, failures, isMuch: connections > 100 && datagrams > 100, ...(await endsAs(place, fixtures, options)) };
}

function tables(): string {
  return run("nft", ["list", "tables"]).trim();
}

/** By name; each in namespaces of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  // Everything that comes from elsewhere is served once the module has applied; the next process finds it so.
  async serves() {
    const { client, pod } = await furnishNode();
    const before = await client.ask(at("tcp", "198.51.100.5"));
    const first = await Daemon.start(place);
    const restricted: ServiceFixture = {
      name: "ranged",
      number: 6,
      local: 1,
      spec: { type: "LoadBalancer", loadBalancerSourceRanges: ["172.18.0.3/32"] },
      loadBalancerIPs: ["198.51.100.6"],
    };
    const services: readonly ServiceFixture[] = [
      ...OUTSIDE,
      restricted,
      { name: "second", number: 2, local: 1 },
      { name: "nowhere", number: 3 },
    ];
    await first.want(services);
    const outside = await client.askAll(QUESTIONS);
    // It gives up long before its SYN goes out again, after a second, and is counted a second time.
    const outOfRange = { ...at("tcp", "198.51.100.6"), patienceMs: 200 };
    const ranged = await client.askAll([outOfRange, { ...at("tcp", "198.51.100.6"), from: "172.18.0.3" }]);
    const refused = await client.ask({ ...at("tcp", "10.96.0.3"), patienceMs: PATIENCE_MS });
    const inPod = await pod.ask(at("tcp", "10.96.0.2"));
    const counted = await first.counted();
    await first.stop();
    const standalone = await client.ask(at("tcp", "198.51.100.5"));
    const second = await Daemon.start(place);
    await second.want(services);
    return {
      before,
      outside,
      ranged,
      refused,
      pod: inPod,
      counted,
      standalone,
      again: second.written(),
      carriers: carriers(),
      tables: tables(),
    };
  },

  // A cache of the host listens at the cluster IP of a DNS Service, goes, and comes back: for packets alone, then for sockets, then for those that opted out.
  async cache() {
    const { pod } = await furnishNode();
    const options = { "opt-out-services": CACHED.map(({ name: service }) => `shop/${service}`) };
    const packets = await cachePhases(await Daemon.start(place), { pod });
    writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));
    const host = { askAll };
    const sockets = await cachePhases(await Daemon.start(place), { pod, host });
    const optedOut = await cachePhases(await Daemon.start({ ...place, options }), { pod, host });
    return { packets, sockets, optedOut };
  },

  // A device that comes carries programs, and one that goes takes them along. Nothing else is written.
  async follows() {
    const { client } = await furnishNode();
    const daemon = await Daemon.start({ ...place, families: ["IPv4"] });
    await daemon.want(OUTSIDE);
    daemon.written();
    const before = carriers();
    const added = (): readonly string[] => carriers().filter((one) => !before.includes(one));
    run("ip", ["link", "add", "late", "type", "veth", "peer", "name", "late0", "netns", "client"]);
    run("ip", ["addr", "add", "203.0.113.1/24", "dev", "late"]);
    run("ip", ["link", "set", "late", "up"]);
    run("ip", ["-n", "client", "addr", "add", "203.0.113.2/24", "dev", "late0"]);
    run("ip", ["-n", "client", "link", "set", "late0", "up"]);
    run("ip", ["route", "add", "default", "dev", "late", "metric", "7"]);
    const cameMs = await until(() => added().length === 2);
    const here = added();
    await daemon.settled();
    const written = daemon.written();
    run("ip", ["-n", "client", "route", "replace", "198.51.100.5/32", "via", "203.0.113.1", "src", "203.0.113.2"]);
    const answer = await client.ask(at("tcp", "198.51.100.5"));
    run("ip", ["link", "del", "late"]);
    const wentMs = await until(
      () => pinned().filter((text) => text.startsWith("link links/") && !text.includes("turnout")).length === before.length,
    );
    const after = carriers();
    // As Calico's: an address of the cluster's range, and not of the node's.
    run("ip", ["link", "add", "cali1", "type", "veth", "peer", "name", "cali0"]);
    run("ip", ["link", "set", "cali1", "up"]);
    run("ip", ["route", "add", "10.1.77.1/32", "dev", "cali1"]);
    const reported = (): readonly unknown[] =>
      daemon.log.lines.flatMap(({ message, fields }) => (message.includes("carry programs") ? [fields] : []));
    await until(() => reported().length === 4);
    const ofPods = added();
    return {
      before,
      here,
      ofPods,
      reported: reported(),
      written,
      answer,
      isFast: [cameMs, wentMs].map((tookMs) => tookMs < 10_000),
      after,
      complaints: daemon.complaints,
    };
  },

  // Named devices alone; a port's bridge stands for it.
  async named() {
    await furnishNode();
    for (const line of ["link add br0 type bridge", "link add port1 type veth peer name port2", "link set port1 master br0"])
      run("ip", line.split(" "));
    const daemon = await Daemon.start({ ...place, options: { devices: ["out*", "port1"] } });
    await daemon.want([PLAIN]);
    const seen = carriers();
    await daemon.stop();
    const other = await Daemon.start(place);
    await other.want([PLAIN]);
    return { seen, found: carriers() };
  },

  // Another program's hand at the table is seen and made good at once.
  async table() {
    const { client } = await furnishNode();
    const daemon = await Daemon.start(place);
    await daemon.want(OUTSIDE);
    // What watches begins with the first sync.
    await sleep(200);
    daemon.written();
    const seen: unknown[] = [];
    for (const command of ["delete table inet turnout-ebpf", "flush ruleset", "flush chain inet turnout-ebpf watch"]) {
      const before = run("nft", ["-s", "list", "ruleset"]);
      run("nft", [command]);
      const tookMs = await until(() => run("nft", ["-s", "list", "ruleset"]) === before);
      seen.push([tookMs < 10_000, await client.ask(at("tcp", "198.51.100.5"))]);
    }
    // nft has written before the daemon knows.
    await until(() => daemon.synced.filter(({ drifted }) => drifted > 0).length === seen.length);
    daemon.written();
    run("nft", ["add table inet other"]);
    await sleep(500);
    return { seen, others: daemon.written(), complaints: daemon.complaints.length };
  },

  killedWhileChanging: () => killed([1, 2, 3, 4], CHANGED_BUT_UDP, {}),
  killedWhileUpgrading: () => killed([2, 6, 10, 14], MANY, { "max-services": 2048 }),

  // By filters of clsact, as before Linux 6.6: served, adopted, upgraded, and removed.
  async clsact() {
    const { client } = await furnishNode();
    const ours = (): number =>
      (JSON.parse(run("ip", ["-j", "link"])) as readonly { readonly ifindex: number }[]).flatMap(({ ifindex }) =>
        (["ingress", "egress"] as const).flatMap((direction) => bpf.clsactProgram({ ifindex, direction }, FILTER) ?? []),
      ).length;
    const first = await Daemon.start({ ...place, byClsact: true });
    await first.want(MANY);
    const attached = ours();
    await client.startLoad("10.96.0.1", "10.96.0.2");
    await first.stop();
    const second = await Daemon.start({ ...place, byClsact: true });
    await second.want(MANY);
    const again = second.written();
    await second.stop();
    const third = await Daemon.start({ ...place, byClsact: true, options: { "max-services": 2048 } });
    await third.want(MANY);
    await sleep(1_500);
    await third.settled();
    const { failures } = await client.endLoad();
    const links = carriers();
    await third.cleanUp();
    return {
      attached,
      again,
      failures,
      links,
      left: [ours(), existsSync(ROOT), tables()],
      silent: await client.ask(at("tcp", "10.96.0.1")),
    };
  },

  // A value is replaced by another program, which opens the map by its pin.
  async replaced() {
    await furnishNode();
    const unread = await Daemon.start({ ...place, isUnwatched: true });
    await unread.want(OUTSIDE);
    const pin = bpf.pins(ROOT).find(({ path }) => path.endsWith("/endpoints"))?.path ?? "";
    const opened = [hostPinFiles.takeOpening(pin), hostPinFiles.takeOpening(pin)];
    const { id } = map("endpoints").info;
    opened.push(hostPinFiles.takeOpening(pin), hostPinFiles.takeOpening(pin));
    bpf.openMap({ id }).close();
    // What a proxy opens itself doesn't count.
    await unread.audit();
    opened.push(hostPinFiles.takeOpening(pin), hostPinFiles.takeOpening(`${pin}-none`));
    await unread.stop();
    const daemon = await Daemon.start(place);
    await daemon.want(OUTSIDE);
    const right = await elements("endpoints");
    // Once it has been read, so that there is something to compare with.
    await sleep(1_000);
    const [key = ""] = right[0]?.split(" ") ?? [];
    map("endpoints").update(Buffer.from(key, "hex"), Buffer.alloc(STRUCTS.endpoint.bytes));
    await until(async () => (await elements("endpoints")).join() === right.join());
    return {
      opened,
      isRepaired: (await elements("endpoints")).join() === right.join(),
      complaints: [...unread.complaints, ...daemon.complaints],
    };
  },
};

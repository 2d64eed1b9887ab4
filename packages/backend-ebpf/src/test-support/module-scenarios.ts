// What module-kernel.test.ts has tried: the module, with everything else as it will be.
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hostPort } from "@turnout/core/backend";
import type { Plain } from "@turnout/core/backend";
import { systemClock } from "@turnout/core/process";
import { RecordingLog, SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { createExec } from "@turnout/host";
import { ebpfModule } from "../module.ts";
import { createEbpfWorld } from "../world.ts";
import { askAll, at, endpointsOf, furnish, serve } from "./clients.ts";
import { askByCrowd } from "./connect-often.ts";
import { ConnectedUdp, peerOf, podSays } from "./connected-sockets.ts";
import { Daemon } from "./daemon.ts";
import type { DaemonOptions } from "./daemon.ts";
import { HARM } from "./harm.ts";
import { CHANGED, endsAs, killings, MANY, PLAIN, runToEnd, STEPS, UDP } from "./killings.ts";
import { bpf, elements, furnishAll, map, modes, pinned, ROOT, SCRATCH } from "./module-scene.ts";
import { otherBuild } from "./other-build.ts";
import { place } from "./place.ts";
import { REFUSALS } from "./refusals.ts";
import { startLoad } from "./start-load.ts";

const { cgroup, objectFile } = place;

const STICKY: ServiceFixture = { name: "sticky", number: 7, local: 1, remote: 1, spec: { sessionAffinity: "ClientIP" } };

/** What a probe has against this host. */
async function problemsOfHost(raw: Readonly<Record<string, Plain>>): Promise<readonly string[]> {
  const world = createEbpfWorld({ exec: createExec(), clock: systemClock(), log: new RecordingLog() });
  const { problems: found } = await ebpfModule.probe(ebpfModule.parseOptions(raw), world, new AbortController().signal);
  return found.map(({ message }) => message);
}

const QUESTIONS = [at("tcp", "10.96.0.1"), at("tcp", "fd00:96::1"), at("tcp", "::ffff:10.96.0.1"), at("udp", "10.96.0.2")];

/** By name; each in namespaces of its own. */
export const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  // A process that comes after another writes nothing but what has changed.
  async adopt() {
    await furnishAll(cgroup);
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want([...SHOWCASE, PLAIN]);
    const written = first.written();
    await first.stop();
    const standalone = await askAll(QUESTIONS.slice(0, 3));
    const second = await Daemon.start({ cgroup, objectFile });
    await second.want([...SHOWCASE, PLAIN]);
    const again = second.written();
    await second.want(SHOWCASE.slice(1));
    const changed = second.written();
    const errors = [...first.complaints, ...second.complaints];
    return { isMuch: written > 60, again, changed: changed > 0 && changed < 14, standalone, errors, pinned: pinned(), modes: modes() };
  },

  // What another hand did to maps and links is found, and mended once.
  async repairs() {
    await furnishAll(cgroup);
    const daemon = await Daemon.start({ cgroup, objectFile, isUnwatched: true });
    await daemon.want([...SHOWCASE.slice(1), { ...PLAIN, local: 2, remote: 2 }]);
    const maps = ["services", "endpoints", "node_addresses", "pod_ranges", "primaries", "settings"];
    const state = async (): Promise<string> => JSON.stringify(await Promise.all(maps.map(elements)));
    const right = await state();
    const found: Record<string, unknown> = {};
    for (const [what, doHarm] of Object.entries(HARM)) {
      daemon.written();
      doHarm();
      await daemon.audit();
      // Lists go a second later.
      await sleep(1100);
      await daemon.settled();
      const repaired = daemon.written();
      await daemon.audit();
      const answers = await askAll(QUESTIONS.slice(0, 3));
      found[what] = [
        repaired,
        daemon.written(),
        (await state()) === right,
        answers.every((answer) => / says (?:10\.1\.1|fd00:1:1:)/.test(answer)),
        pinned().length,
      ];
    }
    return { found, errors: daemon.complaints };
  },

  // Other sizes, then another build: sockets notice nothing, and what was before is gone.
  async upgrade() {
    await furnishAll(cgroup);
    const services = [PLAIN, UDP, STICKY];
    // Each of a client's connections is remembered, so they must not crowd out the one that is looked at.
    const first = await Daemon.start({ cgroup, objectFile, options: { "max-sockets": 32_768 } });
    await first.want(services);
    const kept = connect(80, "10.96.0.1");
    await once(kept, "connect");
    const keptUdp = createSocket("udp4");
    keptUdp.connect(80, "10.96.0.2");
    await once(keptUdp, "connect");
    const sticky = await endpointsOf(at("tcp", "10.96.0.7"), 1);
    const finish = await startLoad("10.96.0.1", "10.96.0.2");
    await first.stop();
    const before = pinned();
    const second = await Daemon.start({ cgroup, objectFile, options: { "max-services": 2048, "max-sockets": 65_536 } });
    await second.want(services);
    await sleep(1500);
    await second.settled();
    const resized = pinned();
    const sizes = [map("services").info.maxEntries, map("asked_tcp").info.maxEntries];
    const stickyThen = await endpointsOf(at("tcp", "10.96.0.7"), 6);
    // Of a connection and a socket of UDP from before the upgrade.
    const peers = [await peerOf(kept), hostPort(keptUdp.remoteAddress().address, keptUdp.remoteAddress().port)];
    await second.stop();
    const shownBefore = (await elements("asked_tcp")).length;
    const third = await Daemon.start({ cgroup, objectFile: otherBuild(SCRATCH), options: { "max-services": 2048, "max-sockets": 65_536 } });
    await third.want(services);
    await sleep(1500);
    await third.settled();
    const rebuilt = third.written();
    const links = bpf.pins(ROOT).filter(({ kind }) => kind === "link").length;
    const { failures, connections, datagrams, shown } = await finish();
    return {
      failures,
      isMuch: connections > 100 && datagrams > 100,
      // For some milliseconds.
      isShownRarely: shown <= 20,
      same: [before.join() === resized.join(), before.join() === pinned().join()],
      sizes,
      sticky: stickyThen.join() === sticky.join(),
      peers,
      asked: shownBefore > 0,
      rebuilt,
      links,
      problems: [first, second, third].flatMap(({ complaints }) => complaints),
    };
  },

  async killedAtFirst() {
    await furnishAll(cgroup);
    return { ...(await killings(place, MANY, STEPS)), ...(await endsAs(place, MANY)) };
  },

  async killedWhileChanging() {
    await furnishAll(cgroup);
    await runToEnd(place, MANY);
    const finish = await startLoad("10.96.0.1", "10.96.0.2");
    const killed = await killings(place, CHANGED, STEPS);
    const { failures, shown } = await finish();
    return { ...killed, failures, shown, ...(await endsAs(place, CHANGED)) };
  },

  async killedWhileUpgrading() {
    await furnishAll(cgroup);
    await runToEnd(place, MANY);
    const finish = await startLoad("10.96.0.1", "10.96.0.2");
    const options = { "max-services": 2048 };
    const killed = await killings(place, MANY, STEPS, options);
    const { failures } = await finish();
    return { ...killed, failures, ...(await endsAs(place, MANY, options)) };
  },

  // What does not fit fails by itself, as a whole, and leaves everything else as it is.
  async full() {
    await furnishAll(cgroup);
    const start = (options: DaemonOptions["options"] = {}): Promise<Daemon> =>
      Daemon.start({ cgroup, objectFile, families: ["IPv4"], options: { "max-endpoints": 8, "max-services": 3, ...options } });
    const daemon = await start();
    const fits: ServiceFixture = { name: "fits", number: 1, local: 2 };
    const large: ServiceFixture = { name: "large", number: 5, local: 5, remote: 5 };
    await daemon.want([large, fits]);
    const first = [
      ...(await askAll([at("tcp", "10.96.0.5")])),
      ...(await endpointsOf(at("tcp", "10.96.0.1"), 12)),
      (await elements("endpoints")).length,
    ];
    const failures = daemon.failures;
    // Both lists don't fit, so the one in force stays.
    await daemon.want([{ ...fits, remote: 5 }]);
    await sleep(1200);
    const second = [...(await endpointsOf(at("tcp", "10.96.0.1"), 12)), (await elements("endpoints")).length];
    await daemon.stop();
    // Another process finds it so, and leaves it so.
    const later = await start();
    await later.want([{ ...fits, remote: 5 }]);
    await sleep(1200);
    const third = [...(await endpointsOf(at("tcp", "10.96.0.1"), 12)), (await elements("endpoints")).length];
    // What fits again comes into force, and so does what had to wait for room.
    await later.want([{ ...fits, remote: 1 }]);
    await sleep(1200);
    const fourth = [...(await endpointsOf(at("tcp", "10.96.0.1"), 20)), (await elements("endpoints")).length];
    const many = [2, 5, 6].map((number) => ({ name: `more-${number}`, number, local: 1 }));
    await later.want([fits, ...many]);
    const services = (await elements("services")).length;
    const servicesFailed = later.failures.filter((line) => line.includes("max-services"));
    await later.want([fits, ...many.slice(0, 2)]);
    await sleep(2500);
    const answers = await askAll([at("tcp", "10.96.0.2"), at("tcp", "10.96.0.5"), at("tcp", "10.96.0.6")]);
    return { first, failures, second, third, fourth, services, servicesFailed, answers, refused: later.refused };
  },

  // A build that this kernel refuses: the programs before go on, and services change all the same.
  async refusedBuild() {
    await furnishAll(cgroup);
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want([PLAIN]);
    await first.stop();
    const before = pinned();
    const second = await Daemon.start({
      cgroup,
      objectFile: otherBuild(SCRATCH, "refused"),
      options: { "verifier-log": `${SCRATCH}/verifier-log` },
    });
    await second.want([{ ...PLAIN, local: 2 }]);
    const seen = await endpointsOf(at("tcp", "10.96.0.1"), 20);
    const { refused } = second;
    // Lists go a second later.
    await sleep(3000);
    await second.settled();
    await second.stop();
    const isSame = pinned().join() === before.join();
    const third = await Daemon.start({ cgroup, objectFile });
    await third.want([{ ...PLAIN, local: 2 }]);
    // From maps of another size on nothing of the refused build is taken at all.
    const fourth = await Daemon.start({
      cgroup,
      objectFile: otherBuild(SCRATCH, "refused"),
      options: { "max-services": 2048 },
      mute: ["IPv6"],
    });
    void fourth.want([PLAIN]);
    for (let left = 100; left > 0 && fourth.complaints.length < 2; left -= 1) await sleep(100);
    return {
      seen,
      refused: refused.length,
      isSame,
      problems: [...new Set(second.complaints)],
      written: third.written(),
      later: [await endpointsOf(at("tcp", "10.96.0.1"), 20), pinned().filter((text) => text.startsWith("map ")).length],
      failing: fourth.complaints[0],
      log: readFileSync(`${SCRATCH}/verifier-log`, "utf8"),
    };
  },

  // As long as something can't be brought to its place the node isn't served, and neither is it by the next process; once it has served it goes on.
  async notServedYet() {
    await furnishAll(cgroup);
    const marks = (): readonly string[] => readdirSync(ROOT).filter((one) => one.startsWith("serving-"));
    const complaintOf = ({ log }: Daemon): string => log.lines.find(({ level }) => level === "error")?.message ?? "";
    const seen: Record<string, unknown> = {};
    for (const [what, refuse] of Object.entries(REFUSALS)) {
      bpf.removePins(ROOT);
      execFileSync("nft", ["-f", "-"], { input: "add table inet turnout-ebpf\ndelete table inet turnout-ebpf\n" });
      const refusal = { isOver: false };
      const start = (): Promise<Daemon> =>
        Daemon.start({ cgroup, objectFile, alter: (world) => ({ ...world, ...refuse(world, refusal) }) });
      const told: string[] = [];
      for (let processes = 0; processes < 2; processes += 1) {
        const daemon = await start();
        const wanting = Promise.allSettled([daemon.want([PLAIN])]);
        for (let left = 500; left > 0 && complaintOf(daemon) === ""; left -= 1) await sleep(20);
        told.push(complaintOf(daemon));
        await daemon.stop();
        await wanting;
      }
      const before = marks();
      const last = await start();
      const wanting = last.want([PLAIN]);
      for (let left = 500; left > 0 && complaintOf(last) === ""; left -= 1) await sleep(20);
      refusal.isOver = true;
      await wanting;
      await last.stop();
      seen[what] = [new Set(told).size, told[0], before, marks()];
    }
    HARM["deviceLinkDetached"]?.();
    const later = await Daemon.start({
      cgroup,
      objectFile,
      alter: (world) => ({ ...world, ...REFUSALS["devices"]?.(world, { isOver: false }) }),
    });
    await later.want([PLAIN]);
    return { seen, later: [marks(), later.failures, later.refused.length] };
  },

  // A link outlives its pin for a moment, and until then its program can't be attached to the device again.
  async linkThatStays() {
    await furnishAll(cgroup);
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want([PLAIN]);
    await first.stop();
    const pin = `${ROOT}/links/3-ingress`;
    const link = bpf.openLink(pin);
    rmSync(pin);
    setTimeout(() => link.close(), 200);
    const second = await Daemon.start({ cgroup, objectFile });
    await second.want([PLAIN]);
    return { failures: second.failures, refused: second.refused, complaints: second.complaints, isPinned: existsSync(pin) };
  },

  // What other layouts left goes, and what isn't ours stays.
  async external() {
    await furnishAll(cgroup);
    for (const path of ["v0-0123456789abcdef/services", "v2-fedcba9876543210/endpoints", "somebody/services"]) {
      const one = bpf.createMap({ name: "old", type: "hash", keySize: 4, valueSize: 4, maxEntries: 1 });
      one.pin(`${ROOT}/${path}`);
      one.close();
    }
    const daemon = await Daemon.start({ cgroup, objectFile });
    await daemon.want([PLAIN]);
    const folders = new Set(pinned().map((text) => text.replace(/^\w+ ([^/]+).*/, "$1")));
    return { folders: [...folders], answers: await askAll(QUESTIONS.slice(0, 1)), problems: daemon.complaints };
  },

  // Other processes are to be served than before; and the cgroup that is served goes and comes.
  async otherCgroup() {
    await furnishAll(cgroup);
    const inner = `${cgroup}/inner`;
    mkdirSync(inner);
    const enter = (folder: string): void => writeFileSync(`${folder}/cgroup.procs`, String(process.pid));
    const ask = (): Promise<readonly string[]> => askAll(QUESTIONS.slice(0, 2));
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want([PLAIN]);
    const before = await ask();
    await first.stop();
    const second = await Daemon.start({ cgroup: inner, objectFile });
    await second.want([PLAIN]);
    const links = second.written();
    const outside = await ask();
    enter(inner);
    const inside = await ask();
    enter(cgroup);
    rmdirSync(inner);
    await second.stop();
    mkdirSync(inner);
    const third = await Daemon.start({ cgroup: inner, objectFile });
    await third.want([PLAIN]);
    enter(inner);
    return {
      before,
      links,
      outside,
      inside,
      again: await ask(),
      complaints: [first, second, third].flatMap(({ complaints }) => complaints),
    };
  },

  // Programs of sockets that ask in both families go over to other maps only when both families are there.
  async oneFamilyLate() {
    await furnishAll(cgroup);
    const services = [PLAIN, { ...UDP, remote: 0 }];
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want(services);
    await first.stop();
    const folders = (): number => new Set(bpf.pins(ROOT).flatMap(({ path }) => /\/(v2-\w+)\//.exec(path)?.[1] ?? [])).size;
    const second = await Daemon.start({ cgroup, objectFile, options: { "max-services": 2048 }, mute: ["IPv6"] });
    await second.want(services);
    const half = [await askAll(QUESTIONS), folders(), second.failures];
    second.unmute("IPv6");
    await second.settled();
    for (let left = 100; left > 0 && folders() > 1; left -= 1) await sleep(100);
    return { half, whole: [await askAll(QUESTIONS), folders(), pinned().length] };
  },

  // Sockets of UDP that are connected to an endpoint which goes are ended, here and in pods, and no others.
  async stuck() {
    await furnishAll(cgroup);
    // A file that is no namespace (yet) is passed over.
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
    mkdirSync("/run/netns");
    writeFileSync("/run/netns/none", "");
    const daemon = await Daemon.start({ cgroup, objectFile });
    const stays: ServiceFixture = { name: "stays", number: 8, protocol: "UDP", remote: 1 };
    const goes: ServiceFixture = { ...UDP, remote: 0, spec: { type: "NodePort", nodePort: 30_002 } };
    await daemon.want([goes, stays, { name: "crowd", number: 9, local: 1 }]);
    const asked = ["10.96.0.2:80", "::ffff:10.96.0.2:80", "172.18.0.1:30002", "fd00:96::2:80", "10.96.0.8:80", "10.1.1.20:8080"];
    const sockets = await Promise.all(asked.map((text) => ConnectedUdp.open(text)));
    const pod = await podSays(["10.96.0.2:80", "10.96.0.8:80"]);
    // More sockets of TCP than are remembered. One of UDP has only connected: whoever hears an answer is remembered longer.
    sockets.push(await ConnectedUdp.connect("10.96.0.2:80"));
    askByCrowd("10.96.0.9", 80, 4 * map("asked_tcp").info.maxEntries);
    await daemon.want([{ ...goes, local: 0, remote: 1 }, stays]);
    for (let left = 100; left > 0 && daemon.forgotten < 6; left -= 1) await sleep(50);
    const fates = { here: await Promise.all(sockets.map((socket) => socket.fate())), pod: await pod.fates() };
    // While no process runs an endpoint goes; the next one sees to it.
    const late = await ConnectedUdp.open("10.96.0.8:80");
    await daemon.stop();
    const next = await Daemon.start({ cgroup, objectFile });
    await next.want([{ ...stays, number: 8, remote: 0, local: 1 }]);
    for (let left = 100; left > 0 && next.forgotten < 2; left -= 1) await sleep(50);
    return {
      forgotten: [daemon.forgotten, next.forgotten],
      ...fates,
      late: await late.fate(),
      problems: [daemon, next].flatMap(({ complaints }) => complaints),
    };
  },

  async pod() {
    furnish();
    await serve();
    const sockets = await Promise.all(cgroup.split(",").map((text) => ConnectedUdp.open(text)));
    process.stdout.write("connected\n");
    await once(process.stdin, "data");
    return Promise.all(sockets.map((socket) => socket.fate()));
  },

  // Another backend serves from now on, one family after the other.
  async leftovers() {
    await furnishAll(cgroup);
    const daemon = await Daemon.start({ cgroup, objectFile });
    await daemon.want([PLAIN]);
    await daemon.stop();
    const { signal } = new AbortController();
    const seen: unknown[] = [];
    for (const family of ["IPv4", "IPv6"] as const) {
      const other = await Daemon.start({ cgroup, objectFile });
      const backend = other.backend(family);
      const inUse = await backend.leftovers?.(true, signal);
      for (const { what, remove } of (await backend.leftovers?.(false, signal)) ?? []) {
        await remove(signal);
        seen.push([family, inUse?.length, what, await askAll(QUESTIONS.slice(0, 3)), existsSync(ROOT)]);
      }
      seen.push((await backend.leftovers?.(false, signal))?.length);
      await other.stop();
    }
    return seen;
  },

  async metrics() {
    await furnishAll(cgroup);
    const elsewhere = { name: "elsewhere", number: 4, remote: 1, spec: { internalTrafficPolicy: "Local" } };
    const services = [PLAIN, UDP, { name: "nowhere", number: 3 }, elsewhere];
    const first = await Daemon.start({ cgroup, objectFile });
    await first.want(services);
    await askAll([
      at("tcp", "10.96.0.1"),
      at("tcp", "10.96.0.1"),
      at("tcp", "fd00:96::1"),
      at("sendto", "10.96.0.2"),
      at("tcp", "10.96.0.3"),
      { ...at("tcp", "10.96.0.4"), patienceMs: 200 },
    ]);
    const counted = await first.counted();
    await first.stop();
    const second = await Daemon.start({ cgroup, objectFile });
    await second.want(services);
    const later = await second.counted();
    await second.want([PLAIN]);
    const maps = second.metrics("IPv4").filter(({ labels }) => labels?.["map"] !== undefined);
    return {
      counted,
      isKept: JSON.stringify(later) === JSON.stringify(counted),
      gone: Object.keys(await second.counted()).filter((text) => !text.includes("/plain:")),
      maps: maps.map(
        ({ name: metric, labels, value }) => `${metric} ${labels?.["map"]} ${metric.endsWith("_entries") ? value : value > 0}`,
      ),
    };
  },

  // Network namespaces that come and go; and addresses of the node.
  async facts() {
    await furnishAll(cgroup);
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", "/run"]);
    const daemon = await Daemon.start({ cgroup, objectFile, options: { "opt-out-namespaces": ["/run/netns/late"] } });
    await daemon.want([{ ...PLAIN, spec: { type: "NodePort", nodePort: 30_001 } }]);
    const optedOut = async (wanted: number): Promise<number> => {
      for (let left = 100; left > 0 && (await elements("opted_out")).length !== wanted; left -= 1) await sleep(100);
      return (await elements("opted_out")).length;
    };
    const before = await optedOut(0);
    execFileSync("ip", ["netns", "add", "late"]);
    const there = await optedOut(1);
    execFileSync("ip", ["netns", "del", "late"]);
    return { before, there, after: await optedOut(0) };
  },

  // What keeps the backend from running, told by the probe alone.
  async probe() {
    const without = await problemsOfHost({});
    execFileSync("mount", ["-t", "bpf", "bpf", "/sys/fs/bpf"]);
    return { without, withAll: await problemsOfHost({}), noCgroup: await problemsOfHost({ cgroup: "/sys/fs/cgroup/none" }) };
  },

  probeWithoutRights: () => problemsOfHost({}),
};

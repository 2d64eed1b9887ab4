import { appendFile, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { startLoad } from "./load.ts";
import type { LoadSource, RunningLoad } from "./load.ts";
import { TURNOUT } from "./proxy.ts";
import { reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Of one test, on a machine that has much else to do. */
const TIMEOUT_MS = 300_000;
/** For what no barrier covers. */
const UNCOVERED_MS = 30_000;
const NODES = ["node1", "node2"];
const TWO = ["pod-1-1", "pod-2-1"];
const PROGRAMS = fileURLToPath(new URL("../packages/backend-ebpf/dist/programs", import.meta.url));
const NEEDS = needs("root", "ip", "conntrack", "nft>=1.0.1", "bpf", "cgroup2", "nsenter", "unshare");

/** What the kit's scenarios don't show of the eBPF backend: no failure under load, whatever ends or is replaced; opting out; what is left. */
describe.each(layoutsOf("ebpf"))("ebpf, %s", { ...NEEDS, timeout: TIMEOUT_MS }, (layout) => {
  let site: Site;
  const flagsOf = (backend: string, ...options: readonly string[]): readonly string[] => [
    ...CLUSTER_CIDR,
    "--backend",
    backend,
    ...options.flatMap((option) => ["--backend-option", option]),
  ];
  beforeAll(async () => {
    site = await createSite({ layout, cgroups: NODES, isInParts: true, flags: flagsOf("ebpf") });
  });
  afterAll(() => site?.destroy());

  const output = async (place: string, command: string): Promise<string> =>
    (await site.place(place).run("sh", ["-c", command])).stdout.trim();
  const pinsOn = async (node: string): Promise<readonly string[]> =>
    (await output(node, "find /sys/fs/bpf -path '*turnout*'")).split("\n").toSorted();
  const active = async (node: string): Promise<readonly string[]> => {
    const tables = (await output(node, "nft list tables")).split("\n").filter((table) => table.includes("turnout"));
    return [...tables.toSorted(), ...((await output(node, "ls /sys/fs/bpf")).split(/\s+/).includes("turnout") ? ["pins"] : [])];
  };

  const sourcesOf = (service: TestService): readonly LoadSource[] => [
    { from: "pod-1-3", way: "clusterIP", service },
    { from: "node1", way: "clusterIP", service },
    { from: "client1", way: "nodePort@node2", service },
    { from: "client1", way: "externalIP", service },
    { from: "pod-2-3", way: "loadBalancerIP", service },
    { from: "pod-1-2", way: "clusterIP", service, transport: "UDP" },
    { from: "client1", way: "nodePort@node1", service, transport: "UDP" },
  ];
  const restart = async (signal: NodeJS.Signals, load: RunningLoad, flags?: readonly string[]): Promise<void> => {
    await Promise.all(site.proxies.map((proxy) => proxy.end(signal)));
    await load.more(10);
    for (const proxy of site.proxies) proxy.start(flags);
    await site.waitForSync();
    await load.more(10);
  };
  const expectAllWell = async (load: RunningLoad): Promise<void> => {
    const { tallies, held } = await load.stop();
    expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
    expect(new Set(held)).toEqual(new Set(["open"]));
  };

  it("endpoints come and go, and the proxy is killed and comes back, without one failure, and finds what is pinned", async () => {
    const service = await site.services.create({ endpoints: TWO });
    const load = await startLoad(site, sourcesOf(service));
    await load.more(10);
    for (const endpoints of [["pod-1-1", "pod-1-2", "pod-2-1", "pod-2-2"], ["pod-2-1", "pod-1-1", "pod-1-2"], TWO]) {
      await service.setEndpoints(endpoints);
      await load.more(10);
    }
    const before = await pinsOn("node1");
    expect(before).toContain("/sys/fs/bpf/turnout/links/turnout_conn4");
    await restart("SIGKILL", load);
    expect(await pinsOn("node1")).toEqual(before);
    await restart("SIGTERM", load);
    expect(await pinsOn("node1")).toEqual(before);
    await expectAllWell(load);
    await service.remove();
  });

  it("an upgrade brings another build of the programs and other sizes of the maps, without one failure", async () => {
    const folder = await mkdtemp(join(tmpdir(), "turnout-e2e-"));
    try {
      const service = await site.services.create({ endpoints: TWO });
      const load = await startLoad(site, sourcesOf(service));
      await load.more(10);
      const before = await pinsOn("node1");
      for (const name of ["sockets.bpf.o", "packets.bpf.o"]) {
        // A build is known by all that is in its file. What is behind the end, nobody reads.
        await copyFile(join(PROGRAMS, name), join(folder, name));
        await appendFile(join(folder, name), "another build");
        for (const node of NODES) await output(node, `mount --bind ${join(folder, name)} ${join(PROGRAMS, name)}`);
      }
      await restart("SIGKILL", load);
      const rebuilt = await pinsOn("node1");
      await restart("SIGTERM", load, flagsOf("ebpf", "max-services=20000", "max-sockets=50000"));
      const resized = await pinsOn("node1");
      const isProgram = (pin: string): boolean => /\/(?:sockets|packets)-[0-9a-f]{16}\//.test(pin);
      const isLink = (pin: string): boolean => pin.includes("/links/");
      const ofMaps = (pins: readonly string[]): readonly string[] => pins.filter((pin) => !isProgram(pin) && !isLink(pin));
      expect(rebuilt.filter(isLink)).toEqual(before.filter(isLink));
      expect(resized.filter(isLink)).toEqual(before.filter(isLink));
      expect(rebuilt.filter((pin) => isProgram(pin) && before.includes(pin))).toEqual([]);
      expect(new Set(ofMaps(resized))).not.toEqual(new Set(ofMaps(rebuilt)));
      for (const node of NODES) await output(node, `umount ${join(PROGRAMS, "sockets.bpf.o")} ${join(PROGRAMS, "packets.bpf.o")}`);
      await restart("SIGTERM", load, flagsOf("ebpf"));
      // Of what was between, nothing is left.
      await expect.poll(() => pinsOn("node1"), { timeout: UNCOVERED_MS }).toEqual(before);
      await expectAllWell(load);
      await service.remove();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  const moveToNftAndBack = async (): Promise<void> => {
    const service = await site.services.create({ endpoints: TWO });
    const load = await startLoad(site, sourcesOf(service));
    const turns: readonly (readonly [backend: string, left: readonly string[]])[] = [
      ["nft", ["table ip turnout", "table ip6 turnout"]],
      ["ebpf", ["table inet turnout-ebpf", "pins"]],
    ];
    for (const [backend, left] of turns) {
      await load.more(10);
      await restart("SIGTERM", load, flagsOf(backend));
      for (const node of NODES) await expect.poll(() => active(node), { timeout: UNCOVERED_MS }).toEqual(left);
      await load.more(10);
    }
    await expectAllWell(load);
    await service.remove();
  };
  // A backend's own program knows no other backend: who uses it cleans up after the former one.
  const itKnowsOthers = layout === "one process" ? it : undefined;
  itKnowsOthers?.("from eBPF to nft and back, and no request fails, no connection breaks", moveToNftAndBack);

  it("whoever is opted out is served by packets, and the others at their sockets", async () => {
    const services = await site.services.createAll({
      plain: { endpoints: ["pod-1-1"] },
      opted: { endpoints: ["pod-1-1"] },
      other: { endpoints: ["pod-1-2"] },
    });
    // Who reaches itself by packets is seen as the node; at its socket it keeps its address.
    const atSocket = { "pod-1-1 clusterIP": "pod-1-1 saw pod-1-1", "pod-1-1 externalIP UDP": "pod-1-1 saw pod-1-1" };
    const byPackets = { "pod-1-1 clusterIP": "pod-1-1 saw node1", "pod-1-1 externalIP UDP": "pod-1-1 saw node1" };
    const other = { "pod-1-2 clusterIP": "pod-1-2 saw pod-1-2" };
    const expectReach = async (service: TestService, table: Readonly<Record<string, string>>): Promise<void> => {
      for (const family of ["IPv4", "IPv6"] as const)
        await expect.poll(() => reachAll(site, service, family, table), { timeout: UNCOVERED_MS }).toEqual(table);
    };
    await expectReach(services.plain, atSocket);
    await expectReach(services.opted, atSocket);
    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    proxy.start(flagsOf("ebpf", `opt-out-services=${services.opted.manifest.namespace ?? "default"}/${services.opted.manifest.name}`));
    await site.waitForSync();
    await expectReach(services.plain, atSocket);
    await expectReach(services.opted, byPackets);
    await proxy.end("SIGTERM");
    proxy.start(flagsOf("ebpf", `opt-out-namespaces=/run/netns/${site.place("pod-1-1").namespace}`));
    await site.waitForSync();
    await expectReach(services.plain, byPackets);
    await expectReach(services.other, other);
    await proxy.end("SIGTERM");
    proxy.start(flagsOf("ebpf", "host-sockets-only=true"));
    await site.waitForSync();
    await expectReach(services.plain, { ...byPackets, "node1 clusterIP": "pod-1-1 saw node1" });
    await proxy.end("SIGTERM");
    proxy.start(flagsOf("ebpf"));
    await site.waitForSync();
    await expectReach(services.plain, atSocket);
  });

  it("cleanup leaves nothing pinned or attached, and no table", async () => {
    const service = await site.services.create({ endpoints: TWO });
    const table = {
      "pod-2-3 clusterIP": "pod-1-1 pod-2-1 saw pod-2-3",
      "node2 nodePort@node2": "pod-1-1 pod-2-1 saw node2",
      "client1 nodePort@node2": "pod-1-1 pod-2-1 saw node2",
    };
    expect(await reachAll(site, service, "IPv4", table)).toEqual(table);
    const proxy = site.proxy("node2");
    await proxy.end("SIGTERM");
    await site.cluster.node("node2").run(TURNOUT, ["cleanup", "--backend", "ebpf"]);
    expect(await active("node2")).toEqual([]);
    // What was attached is held by its pin alone, but for filters of clsact.
    expect(await output("node2", "tc filter show dev eth0 ingress; tc filter show dev eth0 egress; tc filter show dev veth3 ingress")).toBe(
      "",
    );
    const after = { "pod-2-3 clusterIP": "unreachable", "node2 nodePort@node2": "refused", "client1 nodePort@node2": "refused" };
    expect(await reachAll(site, service, "IPv4", after)).toEqual(after);
    proxy.start();
    await site.waitForSync();
    expect(await reachAll(site, service, "IPv4", table)).toEqual(table);
  });
});

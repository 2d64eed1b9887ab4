import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { startLoad } from "./load.ts";
import type { LoadSource } from "./load.ts";
import { TURNOUT } from "./proxy.ts";
import { reach } from "./reach.ts";
import type { TestService } from "./services.ts";
import { listenTo, metricOf, problems } from "./split-probes.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Repair is under way within a second of the kernel's word; the rest is room for a busy machine. */
const REPAIR_MS = 60_000;
/** Of one test, on a machine that has much else to do. */
const TIMEOUT_MS = 120_000;
const FOUR = ["pod-1-1", "pod-1-2", "pod-2-1", "pod-2-2"];

/** What the kit's scenarios don't show of the iptables backend: no failure under load, adoption, affinity in the kernel, repair, cleanup. */
describe.each(["legacy", "nft"] as const)("iptables, %s variant", (variant) => {
  const tools = { ...needs("root", "ip", "conntrack", `iptables-${variant}>=1.8.0`), timeout: TIMEOUT_MS };
  describe.each(layoutsOf(`iptables ${variant}`))("%s", tools, (layout) => {
    let site: Site;
    const flags = [...CLUSTER_CIDR, "--backend", "iptables", "--backend-option", `variant=${variant}`];
    beforeAll(async () => {
      site = await createSite({ layout, flags });
    });
    afterAll(() => site?.destroy());

    const save = async (node: string): Promise<readonly string[]> => {
      const { stdout } = await site.cluster.node(node).run(`iptables-${variant}-save`, []);
      return stdout
        .split("\n")
        .filter((line) => !line.startsWith("#"))
        .map((line) => line.replace(/\[\d+:\d+\]/, ""))
        .toSorted();
    };
    const sourcesOf = (service: TestService): readonly LoadSource[] => [
      { from: "pod-1-3", way: "clusterIP", service },
      { from: "node1", way: "clusterIP", service },
      { from: "client1", way: "nodePort@node2", service },
      { from: "client1", way: "externalIP", service },
      { from: "pod-2-3", way: "loadBalancerIP", service },
    ];

    it("endpoints come and go, and the proxy is killed and comes back, without one failure and without a rule rewritten", async () => {
      const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"], protocols: ["TCP"] });
      const load = await startLoad(site, sourcesOf(service));
      await load.more(20);
      for (const endpoints of [[...FOUR], ["pod-1-1", "pod-2-1", "pod-1-2"], ["pod-1-1", "pod-2-1"]]) {
        await service.setEndpoints(endpoints);
        await load.more(10);
      }
      await site.waitForSync();
      const before = await save("node1");
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
      await load.more(20);
      expect(await save("node1")).toEqual(before);
      for (const proxy of site.proxies) proxy.start();
      await site.waitForSync();
      await load.more(20);
      const { tallies, held } = await load.stop();
      expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
      expect(new Set(held)).toEqual(new Set(["open"]));
      // The barrier of the second start is the only thing that changed.
      const isBarrier = (line: string): boolean => line.includes("e2e/barrier") || line.startsWith(":KUBE-");
      expect((await save("node1")).filter((line) => !isBarrier(line))).toEqual(before.filter((line) => !isBarrier(line)));
    });

    it("clients stay with their endpoints while the proxy is killed and comes back", async () => {
      const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: 600 } });
      const target = service.target("clusterIP", "IPv4");
      const ask = (): Promise<readonly unknown[]> =>
        Promise.all(
          ["pod-1-3", "pod-2-3", "node1", "client1"].map(async (from) => (await site.place(from).agent().attempt(target)).server),
        );
      const before = await ask();
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
      for (const proxy of site.proxies) proxy.start();
      await site.waitForSync();
      expect(before).not.toContain(undefined);
      expect(await ask()).toEqual(before);
    });

    const itIsReported = variant === "nft" ? it : undefined;
    itIsReported?.("what somebody flushes or deletes comes back, and nothing else is touched", async () => {
      const service = await site.services.create({ endpoints: ["pod-1-1"] });
      const node = site.cluster.node("node1");
      const reported = listenTo(() => site.proxy("node1").backend.log());
      const comparisons = (): Promise<number> =>
        metricOf(site.proxy("node1"), "backend", "kubeproxy_sync_full_proxy_rules_duration_seconds_count");
      const compared = await comparisons();
      await node.run("iptables-nft", ["-t", "nat", "-A", "PREROUTING", "-s", "203.0.113.200", "-j", "RETURN"]);
      // The table is everybody's, and what was put there concerns nobody.
      const foundNothing = async (): Promise<void> => {
        await expect.poll(comparisons, { timeout: REPAIR_MS }).toBeGreaterThan(compared);
        expect(problems(reported())).toEqual([]);
      };
      await foundNothing();
      const before = await save("node1");
      const ask = (): Promise<string> => reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" });
      const restored = async (): Promise<void> => {
        const untilMs = performance.now() + REPAIR_MS;
        while (JSON.stringify(await save("node1")) !== JSON.stringify(before) && performance.now() < untilMs) await sleep(50);
        expect(await save("node1")).toEqual(before);
        expect(await ask()).toBe("pod-1-1 saw pod-1-3");
      };
      await node.run("iptables-nft", ["-t", "nat", "-F", "KUBE-MARK-MASQ"]);
      await node.run("iptables-nft", ["-t", "nat", "-D", "KUBE-SERVICES", "1"]);
      await restored();
      const hasReported = async (): Promise<void> => {
        await expect.poll(() => problems(reported())).toContain("another program changed Turnout's objects; they were repaired");
      };
      await hasReported();
      for (const table of ["mangle", "filter", "nat"])
        await node.run("iptables-nft-restore", ["--noflush"], {
          input: `*${table}\n:KUBE-PROXY-CANARY - [0:0]\n-X KUBE-PROXY-CANARY\nCOMMIT\n`,
        });
      await restored();
    });

    it("cleanup leaves no rule and no chain but the guard, which is kubelet's as well", async () => {
      const proxy = site.proxy("node2");
      await proxy.end("SIGTERM");
      await site.cluster.node("node2").run(TURNOUT, ["cleanup", "--backend", "iptables"]);
      const left = (await save("node2")).filter((line) => line.includes("KUBE"));
      expect(left.filter((line) => !line.includes("KUBE-FIREWALL"))).toEqual([]);
      proxy.start();
      await site.waitForSync();
    });
  });
});

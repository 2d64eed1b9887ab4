import { readFile } from "node:fs/promises";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLoad } from "./load.ts";
import type { LoadSource } from "./load.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Of one test, on a machine that has much else to do. */
const TIMEOUT_MS = 180_000;
const NODES = ["node1", "node2"];

/** Kept connections of each source: 500 in all. */
const KEPT = 100;

/** The tables that the real kube-proxy wrote for other Services (bench/kube-proxy/record.ts); one of them gets our Service's addresses, and endpoints nobody has. */
const RECORDED = new URL("../packages/backend-nft/test/kube-proxy/few.nft", import.meta.url);
const RECORDED_IPS = { IPv4: "10.96.0.27", IPv6: "fd00:96::1b" } as const;

/** What is in force after another backend was started: its own rules alone, and nobody's connection was lost on the way. */
describe(
  "another backend takes over",
  { ...needs("root", "ip", "nft>=1.0.1", "iptables-nft>=1.8.0", "iptables-legacy"), timeout: TIMEOUT_MS },
  () => {
    let site: Site;
    const flagsOf = (backend: string, ...more: readonly string[]): readonly string[] => [...CLUSTER_CIDR, "--backend", backend, ...more];
    beforeAll(async () => {
      site = await createSite({ layout: "one process", flags: flagsOf("iptables", "--backend-option", "variant=nft") });
    });
    afterAll(() => site?.destroy());

    const sourcesOf = (service: TestService): readonly LoadSource[] => [
      { from: "pod-1-3", way: "clusterIP", service },
      { from: "node1", way: "clusterIP", service },
      { from: "client1", way: "nodePort@node2", service },
      { from: "client1", way: "externalIP", service },
      { from: "pod-2-3", way: "loadBalancerIP", service },
    ];

    /** The proxies' chains and tables on a node, by their owner's name. */
    const active = async (name: string): Promise<readonly string[]> => {
      const node = site.cluster.node(name);
      const found = new Set<string>();
      for (const tool of ["iptables-nft", "iptables-legacy", "ip6tables-nft", "ip6tables-legacy"]) {
        const { stdout } = await node.run(`${tool}-save`, []);
        // The guard is kubelet's as well, and is never removed.
        if (/^:KUBE-(?!FIREWALL)/m.test(stdout)) found.add(tool);
      }
      const { stdout } = await node.run("nft", ["list", "tables"]);
      for (const [, table] of stdout.matchAll(/^table (ip6? (?:turnout|kube-proxy))$/gm)) found.add(table ?? "");
      return [...found].toSorted();
    };
    const expectApplied = async (expected: readonly string[]): Promise<void> => {
      for (const name of NODES) await expect.poll(() => active(name), { timeout: 30_000 }).toEqual(expected);
    };

    const IPTABLES = { nft: ["ip6tables-nft", "iptables-nft"], legacy: ["ip6tables-legacy", "iptables-legacy"] };
    const NFT = ["ip turnout", "ip6 turnout"];

    it("from iptables to nft and back, by both variants, and no request fails, no connection breaks", async () => {
      const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"], protocols: ["TCP"] });
      await expectApplied(IPTABLES.nft);
      const load = await startLoad(site, sourcesOf(service), KEPT);
      const turns: readonly (readonly [flags: readonly string[], left: readonly string[]])[] = [
        [flagsOf("nft"), NFT],
        [flagsOf("iptables", "--backend-option", "variant=legacy"), IPTABLES.legacy],
        [flagsOf("nft"), NFT],
        [flagsOf("iptables", "--backend-option", "variant=nft"), IPTABLES.nft],
      ];
      for (const [flags, left] of turns) {
        await load.more(10);
        await Promise.all(site.proxies.map((proxy) => proxy.end("SIGTERM")));
        for (const proxy of site.proxies) proxy.start(flags);
        await site.waitForSync();
        await expectApplied(left);
        await load.more(10);
      }
      const { tallies, held } = await load.stop();
      expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
      expect([held.length, new Set(held)]).toEqual([sourcesOf(service).length * KEPT, new Set(["open"])]);
      await service.remove();
    });

    it("a table of kube-proxy's goes once our rules are in force, and what it misdirected is answered", async () => {
      const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGTERM")));
      const text = (["IPv4", "IPv6"] as const).reduce(
        (tables, family) => tables.replaceAll(RECORDED_IPS[family], service.target("clusterIP", family).address),
        await readFile(RECORDED, "utf8"),
      );
      for (const name of NODES) {
        await site.cluster.node(name).run("nft", ["-f", "-"], { input: text });
      }
      for (const proxy of site.proxies) proxy.start(flagsOf("nft", "--keep-other-rules"));
      await site.waitForSync();
      for (const proxy of site.proxies) await expect.poll(() => proxy.log().match(/beside ours/g)?.length, { timeout: 30_000 }).toBe(4);
      await expectApplied(["ip kube-proxy", "ip turnout", "ip6 kube-proxy", "ip6 turnout", ...IPTABLES.nft].toSorted());
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGTERM")));
      for (const proxy of site.proxies) proxy.start(flagsOf("nft"));
      await expectApplied(NFT);
      for (const family of ["IPv4", "IPv6"] as const) {
        const { failed } = await site
          .place("pod-1-3")
          .agent()
          .burst({ ...service.target("clusterIP", family), count: 5 });
        expect(failed).toEqual({});
      }
    });
  },
);

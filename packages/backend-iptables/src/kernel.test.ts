import type { Drift, Exec, IPFamily } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import type { LinuxWorld } from "@turnout/host";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createFakeNetlink, createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openProxy, SHOWCASE } from "./test-support/states.ts";
import type { IptablesProxy } from "./test-support/states.ts";

const VARIANTS: readonly IptablesVariant[] = ["legacy", "nft"];
const { signal } = new AbortController();

let namespace: TestNamespace;
let world: LinuxWorld;

const run = (file: string, args: readonly string[], input?: string): Promise<string> => namespace.run(file, args, input);

const open = (variant: IptablesVariant, family: IPFamily = "IPv4", where = world): Promise<IptablesProxy> =>
  openProxy(where, family, { raw: { variant } });

/** A process that has brought the showcase into force in IPv4. */
async function showcase(variant: IptablesVariant): Promise<IptablesProxy> {
  const proxy = await open(variant);
  await proxy.sync(SHOWCASE);
  return proxy;
}

function tool(variant: IptablesVariant, family: IPFamily, what: "" | "-save" | "-restore"): string {
  return `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}${what}`;
}

const ALL_TABLES = ["filter", "nat", "mangle"].map((table) => `*${table}\nCOMMIT\n`).join("");

/** Take everything out of both variants. */
async function flush(): Promise<void> {
  for (const variant of VARIANTS)
    for (const family of ["IPv4", "IPv6"] as const) await run(tool(variant, family, "-restore"), [], ALL_TABLES);
}

/** What the kernel holds, in a form that doesn't depend on the order in which dispatch rules came there. */
async function kernelState(proxy: IptablesProxy): Promise<readonly string[]> {
  const observed = await proxy.backend.observe(signal);
  return [...(observed?.objects.values() ?? [])].map(({ kind, key, value }) => `${kind} ${key} ${String(value)}`).sort();
}

const fixture: fc.Arbitrary<ServiceFixture> = fc
  .record({
    number: fc.integer({ min: 1, max: 6 }),
    protocol: fc.constantFrom("TCP", "UDP", "SCTP"),
    local: fc.integer({ min: 0, max: 3 }),
    remote: fc.integer({ min: 0, max: 3 }),
    hasAffinity: fc.boolean(),
    isLocal: fc.boolean(),
    isBalanced: fc.boolean(),
    isRanged: fc.boolean(),
  })
  .map(({ number, protocol, local, remote, hasAffinity, isLocal, isBalanced, isRanged }) => ({
    name: `svc-${number}`,
    number,
    protocol,
    local,
    remote,
    loadBalancerIPs: isBalanced ? [`198.51.100.${number}`, `fd00:198::${number}`] : [],
    spec: {
      type: isBalanced ? "LoadBalancer" : "ClusterIP",
      ...(isBalanced ? { nodePort: 30_000 + number, externalTrafficPolicy: isLocal ? "Local" : "Cluster" } : {}),
      ...(isRanged ? { loadBalancerSourceRanges: [`203.0.${number}.0/24`, `2001:db8:${number}::/48`] } : {}),
      ...(hasAffinity ? { sessionAffinity: "ClientIP" } : {}),
    },
  }));

const state = fc.uniqueArray(fixture, { selector: ({ number }) => number, maxLength: 6 });

describe("the iptables backend on a real kernel", needs("root", "netns", "iptables-legacy>=1.8.0", "iptables-nft>=1.8.0"), () => {
  beforeAll(() => {
    namespace = createTestNamespace("tipt");
    ({ world } = namespace);
  });
  afterAll(() => namespace?.remove());
  beforeEach(flush);

  describe.each(VARIANTS)("%s variant", (variant) => {
    describe.each(["IPv4", "IPv6"] as const)("%s", (family) => {
      it("takes the showcase, reads it back word for word, and a second sync is empty", async () => {
        const proxy = await open(variant, family);
        expect(await proxy.sync(SHOWCASE)).toBeGreaterThan(60);
        await proxy.adopt();
        expect(proxy.planText()).toBe("# nothing to do\n");
      });

      it("ends where a full sync ends, whatever the history", async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(state, { minLength: 2, maxLength: 5 }), async (history) => {
            // On top of what the last history left: a process that comes after another.
            const proxy = await open(variant, family);
            await proxy.adopt();
            for (const fixtures of history) {
              await proxy.sync(fixtures);
            }
            expect(proxy.ledger.defects.size).toBe(0);
            await proxy.adopt();
            expect(proxy.planText()).toBe("# nothing to do\n");
          }),
          { numRuns: 4 },
        );
      });
    });

    it("writes a change of one endpoint and nothing else", async () => {
      const proxy = await showcase(variant);
      expect(await proxy.sync(SHOWCASE.map((wanted) => (wanted.name === "plain" ? { ...wanted, remote: 3 } : wanted)))).toBe(2);
      await proxy.adopt();
      expect(await proxy.sync()).toBe(0);
    });

    it("ends where it should when the tool was killed between two tables, and in the middle of one", async () => {
      const expected = await kernelState(await showcase(variant));
      for (const part of [/^(.*?)\*nat.*$/s, /^(.*?\*nat.{3000}).*$/s]) {
        await flush();
        const cutShort: Exec["run"] = async (file, args, options = {}) => {
          if (!file.endsWith("-restore")) return await world.exec.run(file, args, options);
          await world.exec.run(file, args, { ...options, input: options.input?.replace(part, "$1") ?? "" });
          return { code: 137, stdout: "", stderr: "" };
        };
        const first = await open(variant, "IPv4", { ...world, exec: { ...world.exec, run: cutShort } });
        await expect(first.sync(SHOWCASE)).rejects.toMatchObject({ code: "tool_failed" });
        expect((await first.backend.metrics?.())?.find(({ name }) => name.endsWith("iptables_restore_failures_total"))?.value).toBe(1);
        const second = await open(variant);
        await second.adopt();
        expect(await second.sync(SHOWCASE)).toBeGreaterThan(0);
        expect(await kernelState(second)).toEqual(expected);
      }
    });

    it("counts the rules in force and those it wrote", async () => {
      const proxy = await open(variant);
      const numbers = async (what: string): Promise<readonly (number | undefined)[]> => {
        const reported = (await proxy.backend.metrics?.()) ?? [];
        const name = `kubeproxy_sync_proxy_rules_iptables_${what}`;
        return ["filter", "nat"].map((table) => reported.find((one) => one.name === name && one.labels?.["table"] === table)?.value);
      };
      await proxy.sync(SHOWCASE);
      const all = await numbers("total");
      expect(await numbers("last")).toEqual(all);
      await proxy.sync(SHOWCASE.slice(1));
      expect(await numbers("last")).toEqual([0, 0]);
      const [filter = 0, nat = 0] = await numbers("total");
      // The dispatch rule, three endpoints picked and the mark, and two rules for each endpoint.
      expect([(all[0] ?? 0) - filter, (all[1] ?? 0) - nat]).toEqual([0, 1 + 4 + 6]);
      await proxy.adopt();
      // What is read is counted the same way.
      expect(await numbers("total")).toEqual([filter, nat]);
    });

    it("puts back just what somebody took, changed, moved or added", async () => {
      const proxy = await showcase(variant);
      const before = await kernelState(proxy);
      const iptables = tool(variant, "IPv4", "");
      await run(iptables, ["-t", "nat", "-F", "KUBE-MARK-MASQ"]);
      await run(iptables, ["-t", "nat", "-D", "PREROUTING", "1"]);
      await run(iptables, ["-t", "nat", "-D", "KUBE-SERVICES", "1"]);
      await run(iptables, ["-t", "nat", "-A", "KUBE-SERVICES", "-s", "203.0.113.1", "-j", "RETURN"]);
      await run(iptables, ["-t", "filter", "-R", "KUBE-NODEPORTS", "1", "-j", "DROP"]);
      await run(iptables, ["-t", "filter", "-I", "KUBE-FIREWALL", "-s", "203.0.113.2", "-j", "DROP"]);
      await run(tool(variant, "IPv4", "-restore"), ["--noflush"], "*mangle\n-X KUBE-PROXY-CANARY\nCOMMIT\n");
      const second = await open(variant);
      await second.adopt();
      expect(await second.sync(SHOWCASE)).toBe(8);
      expect(await kernelState(second)).toEqual(before);
      expect(await run(tool(variant, "IPv4", "-save"), ["-t", "filter"])).toContain("-A KUBE-FIREWALL -s 203.0.113.2/32 -j DROP");
    });

    it("cleans up what is its own, and leaves kubelet's and everybody else's", async () => {
      const external = "*nat\n:CNI-HOSTPORT-DNAT - [0:0]\n-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\nCOMMIT\n";
      const kubelet = "*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n*filter\n:KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\nCOMMIT\n";
      await run(tool(variant, "IPv4", "-restore"), ["--noflush"], external + kubelet);
      const listed = async (): Promise<readonly string[]> =>
        (await run(tool(variant, "IPv4", "-save"), [])).split("\n").filter((line) => /^[:-].*(CNI|KUBE)/.test(line));
      const before = await listed();
      const proxy = await open(variant);
      await proxy.adopt();
      await proxy.sync(SHOWCASE);
      await proxy.backend.cleanup?.(signal);
      await proxy.backend.cleanup?.(signal);
      const left = await listed();
      expect(before.filter((line) => !left.includes(line))).toEqual([]);
      // The guard is kubelet's as much as ours, and stays.
      expect(left.filter((line) => !before.includes(line) && !line.includes("127.0.0.0/8") && !line.includes("KUBE-FIREWALL"))).toEqual([]);
    });

    it("cleans up all but the one chain that somebody else jumps to, and says which", async () => {
      const proxy = await showcase(variant);
      // As the portmap plugin of CNI does where it is told to use the chain that is there.
      const external = "*nat\n:CNI-HOSTPORT-SETMARK - [0:0]\n-A CNI-HOSTPORT-SETMARK -j KUBE-MARK-MASQ\nCOMMIT\n";
      await run(tool(variant, "IPv4", "-restore"), ["--noflush"], external);
      await expect(proxy.backend.cleanup?.(signal)).rejects.toMatchObject({ code: "already_exists", object: "nat KUBE-MARK-MASQ" });
      const left = await run(tool(variant, "IPv4", "-save"), []);
      expect(left.match(/^:KUBE-[A-Z-]+(?= )/gm)).toEqual(expect.arrayContaining([":KUBE-MARK-MASQ", ":KUBE-FIREWALL"]));
      expect(left.match(/^:KUBE-/gm)).toHaveLength(2);
      await run(tool(variant, "IPv4", ""), ["-t", "nat", "-F", "CNI-HOSTPORT-SETMARK"]);
      await proxy.backend.cleanup?.(signal);
    });

    it("leaves a chain that somebody else jumps to empty, goes on, and deletes it when it can", async () => {
      const proxy = await showcase(variant);
      const [own = ""] = /KUBE-SVC-\w+/.exec(await run(tool(variant, "IPv4", "-save"), ["-t", "nat"])) ?? [];
      await run(tool(variant, "IPv4", ""), ["-t", "nat", "-A", "OUTPUT", "-j", own]);
      expect(await proxy.sync([])).toBeGreaterThan(40);
      expect(proxy.ledger.delta(Date.now() + 70_000).lingering.map(({ object }) => object.key)).toEqual([`nat ${own}`]);
      await run(tool(variant, "IPv4", ""), ["-t", "nat", "-D", "OUTPUT", "-j", own]);
      const delta = proxy.ledger.delta(Date.now() + 100_000);
      expect(await proxy.backend.apply(proxy.backend.plan(delta), signal)).toEqual({});
      await proxy.adopt();
      expect(proxy.planText()).toBe("# nothing to do\n");
    });
  });

  it("mends a flushed table by what the kernel told of it, and lists no table for that", async () => {
    const netlink = createFakeNetlink();
    const programs: string[] = [];
    const noted: Exec["run"] = (file, args, options) => {
      programs.push(file);
      return world.exec.run(file, args, options);
    };
    const watched: LinuxWorld = { ...world, netlink, exec: { ...world.exec, run: noted } };
    const proxy = await open("nft", "IPv4", watched);
    // So many chains that they are written in several sections.
    await proxy.sync(Array.from({ length: 25 }, (_, index) => ({ name: `svc-${index}`, number: 1 + index, local: 5, remote: 5 })));
    const before = await kernelState(proxy);
    const stop = new AbortController();
    const events = proxy.backend.watch?.(stop.signal)[Symbol.asyncIterator]();
    expect((await events?.next())?.value).toMatchObject({ kind: "facts" });
    await run("iptables-nft", ["-t", "nat", "-F"]);
    const names = [...(await run("iptables-nft-save", ["-t", "nat"])).matchAll(/^:(\S+)/gm)].map(([, name = ""]) => name);
    programs.length = 0;
    const changes = names.map((name) => ({ table: "ip nat", verb: "deleted", kind: "rule", name, keys: [] }) as const);
    netlink.commitNft({ pid: 7, process: "iptables-nft", tables: ["ip nat"], changes });
    const reported = (await events?.next())?.value as Drift | undefined;
    stop.abort();
    expect(reported).toMatchObject({ kind: "drift", what: "iptables-nft (pid 7) changed table ip nat" });
    if (reported?.left !== undefined) proxy.ledger.trust(reported.left);
    expect(await proxy.sync()).toBeGreaterThan(250);
    expect(programs.filter((file) => file.endsWith("-save"))).toEqual([]);
    expect(await kernelState(proxy)).toEqual(before);
  });

  it("uses the variant in which kubelet's chains are, and takes over there what it finds", async () => {
    await run("iptables-legacy-restore", ["--noflush"], "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n");
    const proxy = await openProxy(world, "IPv6");
    await proxy.sync(SHOWCASE);
    expect(await run("ip6tables-legacy-save", ["-t", "nat"])).toContain("KUBE-SERVICES");
    expect(await run("ip6tables-nft-save", ["-t", "nat"])).not.toContain("KUBE-SERVICES");
  });
});

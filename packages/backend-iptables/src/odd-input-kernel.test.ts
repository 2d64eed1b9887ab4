import { systemClock } from "@turnout/core/process";
import { spawnSync } from "node:child_process";
import { Ledger } from "@turnout/core";
import type { Exec, IPFamily, Log, NodeSettings } from "@turnout/core";
import { createStoreView, POD_SETTINGS, rawNode } from "@turnout/core/testing";
import { createExec } from "@turnout/host";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createFakeNetlink } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { oneOf } from "@turnout/host/iptables/text";
import { iptablesModule } from "./module.ts";
import type { IptablesObject } from "./objects.ts";
import { explainPlan, planDelta } from "./plan.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS } from "./test-support/states.ts";

const NAMESPACE = `tiptodd-${process.pid}`;
const LONGEST = "n".repeat(63);
const { signal } = new AbortController();

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

/** The real exec, with every program started inside the test's namespace. */
function execInside(): Exec {
  const exec = createExec();
  const inside = (file: string, args: readonly string[]): readonly string[] => ["netns", "exec", NAMESPACE, file, ...args];
  return {
    run: (file, args, options) => exec.run("ip", inside(file, args), options),
    open: (file, args) => exec.open("ip", inside(file, args)),
  };
}

interface OddCase {
  readonly name: string;
  readonly family: IPFamily;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly vips: readonly string[];
  readonly endpoints: readonly string[];
  readonly settings: Partial<NodeSettings>;
}

const CASES: readonly OddCase[] = [
  {
    name: "forms of IPv6 addresses and ranges, the highest mark bit, the longest names, affinity of a day",
    family: "IPv6",
    spec: {
      clusterIP: "fd00:96::1:0:0:1",
      clusterIPs: ["fd00:96::1:0:0:1"],
      externalIPs: ["0:0:0:0:0:FFFF:0102:0304", "64:ff9b::102:304", "::102:304", "1:0:0:2:0:0:0:3", "1:0:2:3:4:5:6:7"],
      loadBalancerSourceRanges: ["2001:db8:1::5/48", "::1:2:3/96", "::ffff:0:0/96", "1:2::/128", "::1.2.3.4/128"],
      ports: [
        { name: "p".repeat(15), port: 1, nodePort: 30001 },
        { name: "s", port: 65535, protocol: "SCTP", nodePort: 30001 },
        { name: "u", port: 65535, protocol: "UDP", nodePort: 30001 },
      ],
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_400 } },
    },
    vips: ["fd00:198::6", "FD00:0198::0:1.2.3.4"],
    endpoints: ["fd00:1::1", "::1:2", "64:ff9b::1.2.3.4", "2001:DB8:0:0:1::1"],
    settings: { masqueradeBit: 31 },
  },
  {
    name: "ranges with host bits, the lowest mark bit, affinity of a second",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["10.1.2.3/16", "192.168.0.1/32", "128.0.0.0/1", "1.2.3.4/31"],
      ports: [{ port: 65535, nodePort: 30001 }],
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } },
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1", "10.1.0.2", "10.1.0.3"],
    settings: { masqueradeBit: 0 },
  },
  {
    name: "a pod's interface with the longest name there may be",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["10.0.0.0/8"],
      externalTrafficPolicy: "Local",
      ports: [{ port: 80, nodePort: 30001 }],
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1"],
    settings: { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "-veth.1:2@3456" } },
  },
  {
    name: "half of all addresses are allowed, all are pods",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["0.0.0.0/1"],
      externalTrafficPolicy: "Local",
      healthCheckNodePort: 31_000,
      ports: [{ port: 80, nodePort: 30001 }],
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1", "10.1.0.2"],
    settings: { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["0.0.0.0/0", "::/0"] } },
  },
];

/** A ledger that wants what the case comes to. */
function wanting({ family, spec, vips, endpoints, settings }: OddCase): Ledger<IptablesObject> {
  const ports = (spec["ports"] as readonly { readonly name?: string; readonly protocol?: string }[]).map(
    ({ name = "", protocol = "TCP" }) => ({ name, port: 8080, protocol }),
  );
  const metadata = { namespace: LONGEST, name: "a".repeat(63) };
  const { view, pull } = createStoreView(
    [
      rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] }),
      {
        kind: "Service",
        metadata,
        spec: { type: "LoadBalancer", ipFamilies: [family], ...spec },
        status: { loadBalancer: { ingress: vips.map((vip) => ({ ip: vip })) } },
      },
      {
        kind: "EndpointSlice",
        metadata: { namespace: LONGEST, name: "slice", labels: { "kubernetes.io/service-name": metadata.name } },
        addressType: family,
        ports,
        endpoints: endpoints.map((address, index) => ({ addresses: [address], nodeName: index % 2 === 0 ? "node1" : "node2" })),
      },
    ],
    { family, settings: { ...POD_SETTINGS, ...settings } },
  );
  const node = pull()?.node;
  if (node === undefined) throw new Error("a synced store gives a full change set");
  const options = iptablesModule.parseOptions({});
  const context = { node, host: FACTS };
  const rows = new Map([...view.rows].map(([key, row]) => [key, renderRow(row, context, options)]));
  const ledger = new Ledger<IptablesObject>();
  ledger.setAll(renderSkeleton(context, options), rows);
  return ledger;
}

const quiet: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

describe("odd input", needs("root", "netns", "iptables-legacy>=1.8.0", "iptables-nft>=1.8.0"), () => {
  beforeAll(() => ip("netns", "add", NAMESPACE));
  afterAll(() => ip("netns", "del", NAMESPACE));

  describe.each<IptablesVariant>(["legacy", "nft"])("%s variant", (variant) => {
    it.each(CASES.map((odd) => [odd.name, odd] as const))("is read back word for word: %s", async (_, odd) => {
      const world = { exec: execInside(), clock: systemClock(), netlink: createFakeNetlink(), log: quiet };
      const backend = (await iptablesModule.open(iptablesModule.parseOptions({ variant }), world, signal)).family(odd.family);
      const ledger = wanting(odd);
      ledger.adopt(await backend.observe(signal));
      await backend.apply(backend.plan(ledger.delta(0)), signal);
      ledger.adopt(await backend.observe(signal));
      expect([...ledger.wanted().keys()].some((id) => id.startsWith("chain nat KUBE-FW-"))).toBe(true);
      expect(explainPlan(planDelta(ledger.delta(0)))).toBe("# nothing to do\n");
    });

    it("keeps every probability as it is written, kube-proxy's too", async () => {
      const parts = [...Array.from({ length: 300 }, (_, index) => index + 2), 999, 1_000, 3_333, 5_000, 9_999, 65_536];
      const { run } = execInside();
      for (const write of [oneOf, (part: number): string => `-m statistic --mode random --probability ${(1 / part).toFixed(10)}`]) {
        const input = `*nat\n:ODD - [0:0]\n${parts.map((part) => `-A ODD ${write(part)}\n`).join("")}COMMIT\n`;
        await run(`iptables-${variant}-restore`, ["-w", "10", "--noflush"], { input });
        const { stdout } = await run(`iptables-${variant}-save`, ["-t", "nat"]);
        const kept = stdout.split("\n").flatMap((line) => (line.startsWith("-A ODD ") ? [line.slice("-A ODD ".length).trimEnd()] : []));
        expect(kept).toEqual(parts.map(oneOf));
      }
    });
  });
});

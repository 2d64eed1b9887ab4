import { spawnSync } from "node:child_process";
import { systemClock } from "@turnout/core/process";
import type { Counts, Exec, Log } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { createExec } from "@turnout/host";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createFakeNetlink } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { Proxy } from "./test-support/states.ts";

const { signal } = new AbortController();
const quiet: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const [NODE, CLIENT] = [`tiptc-${process.pid}`, `tiptc-client-${process.pid}`];

const balanced = (number: number, spec: object): Pick<ServiceFixture, "loadBalancerIPs" | "spec"> => ({
  loadBalancerIPs: [`198.51.100.${number}`],
  spec: { type: "LoadBalancer", ...spec },
});
/** All of UDP: a client is done when it has sent, whatever becomes of it. */
const FIXTURES: readonly ServiceFixture[] = [
  { name: "web", number: 1, remote: 2 },
  { name: "empty", number: 2 },
  { name: "elsewhere", number: 3, remote: 1, ...balanced(3, { externalTrafficPolicy: "Local", nodePort: 30_003 }) },
  { name: "ranged", number: 4, remote: 1, ...balanced(4, { loadBalancerSourceRanges: ["203.0.113.0/24"], nodePort: 30_004 }) },
  { name: "port", number: 5, remote: 1, spec: { type: "NodePort", nodePort: 30_005 } },
].map((fixture) => ({ protocol: "UDP", ...fixture }));

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

/** The real exec, with every program started inside the node. */
function execInside(): Exec {
  const exec = createExec();
  const inside = (file: string, args: readonly string[]): readonly string[] => ["netns", "exec", NODE, file, ...args];
  return {
    run: (file, args, options) => exec.run("ip", inside(file, args), options),
    open: (file, args) => exec.open("ip", inside(file, args)),
  };
}

describe("counting on a real kernel", needs("root", "netns", "iptables", "ip", "sysctl"), () => {
  beforeAll(() => {
    ip("netns", "add", NODE);
    ip("netns", "add", CLIENT);
    ip("-n", NODE, "link", "add", "up0", "type", "veth", "peer", "name", "up0", "netns", CLIENT);
    for (const [netns, address] of [
      [NODE, "172.18.0.1/24"],
      [CLIENT, "172.18.0.9/24"],
    ] as const) {
      ip("-n", netns, "link", "set", "up0", "up");
      ip("-n", netns, "address", "add", address, "dev", "up0");
    }
    ip("-n", CLIENT, "route", "add", "default", "via", "172.18.0.1");
    // What is refused is on its way to somewhere else.
    ip("-n", NODE, "route", "add", "default", "via", "172.18.0.8");
    ip("netns", "exec", NODE, "sysctl", "-qw", "net.ipv4.ip_forward=1");
  });
  afterAll(() => {
    for (const netns of [NODE, CLIENT]) spawnSync("ip", ["netns", "del", netns]);
  });

  function send(...targets: readonly (readonly [address: string, port: number])[]): void {
    const script = targets.map(([address, port]) => `echo x >/dev/udp/${address}/${port}; true`).join("\n");
    ip("netns", "exec", CLIENT, "bash", "-c", script);
  }

  async function counts({ backend, ledger }: Proxy): Promise<Readonly<Record<string, Counts>>> {
    const read = await backend.counts?.(signal, (id) => ledger.ownersOf([id]).size > 0);
    return Object.fromEntries([...(read ?? [])].map(([id, one]) => [[...ledger.ownersOf([id])].join() || id, one]));
  }

  it.each<IptablesVariant>(["legacy", "nft"])("tells for each Service what came to it, as the kernel counted: %s", async (variant) => {
    const world = { exec: execInside(), clock: systemClock(), netlink: createFakeNetlink(), log: quiet };
    const dataplane = await iptablesModule.open(iptablesModule.parseOptions({ variant }), world, signal);
    const proxy = new Proxy(dataplane.family("IPv4"), "IPv4");
    proxy.want(FIXTURES);
    await proxy.sync();
    expect(await counts(proxy)).toEqual({});
    send(["10.96.0.1", 80], ["10.96.0.1", 80], ["10.96.0.1", 80], ["10.96.0.2", 80], ["172.18.0.1", 30_005], ["10.96.0.99", 80]);
    send(["198.51.100.3", 80], ["198.51.100.4", 80], ["198.51.100.4", 80]);
    expect(await counts(proxy)).toEqual({
      "shop/web:main/UDP": { connections: 3 },
      "shop/empty:main/UDP": { rejects: 1 },
      "shop/elsewhere:main/UDP": { dropsWithoutLocal: 1 },
      "shop/ranged:main/UDP": { dropsOutsideRanges: 2 },
      "shop/port:main/UDP": { connections: 1 },
    });
    // Another process finds the same.
    const next = new Proxy(dataplane.family("IPv4"), "IPv4");
    next.want(FIXTURES);
    await next.adopt();
    expect([await next.sync(), (await counts(next))["shop/web:main/UDP"]]).toEqual([0, { connections: 3 }]);
    await next.backend.cleanup?.(signal);
    await dataplane.close(signal);
  });
});

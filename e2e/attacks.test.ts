import { needs } from "@turnout/house/needs";
import { serviceManifest } from "@turnout/lab";
import type { IPFamily } from "@turnout/core";
import type { HoldStatus, TargetRequest } from "@turnout/lab";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reach } from "./reach.ts";
import { SERVER_PORT, SERVICE_PORT } from "./services.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** Of one test, on a machine that has much else to do. */
const TIMEOUT_MS = 120_000;
const NEEDS = needs("root", "ip", "conntrack", "nft>=1.0.1", "iptables>=1.8.0", "bpf", "cgroup2", "nsenter", "unshare");
/** A program of node1 that only node1 itself should reach. */
const ON_LOOPBACK: TargetRequest = { address: "127.0.0.1", port: 9999, timeoutMs: 1000 };
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** A server on the Internet, which the fabric stands for. */
const OUTSIDE: Readonly<Record<IPFamily, string>> = { IPv4: "192.0.2.66", IPv6: "2001:db8::66" };
/** The cluster IPs of a Service with endpoints at loopback. */
const LOOPBACK_IP: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.9.1", IPv6: "fd00:96::901" };
/** Services may have the addresses that the laboratory gives them, and no others. */
const ALLOWED = "198.51.100.0/24,fd00:198::/64";
const FLAGS = [...CLUSTER_CIDR, "--allowed-external-ip-cidrs", ALLOWED, "--allowed-load-balancer-ip-cidrs", ALLOWED];
/** A neighbour sends packets for 127.0.0.1 to node1 instead of keeping them. */
const TO_NODE1 = `
  echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
  ip address del 127.0.0.1/8 dev lo
  ip route add 127.0.0.1/32 via "$1" src "$2"`;

/** Segments outside of a window that are sent to one connection. */
const STRAYS = 5;

const setLocalnet = (value: number): readonly string[] => ["-c", `echo ${value} > /proc/sys/net/ipv4/conf/all/route_localnet`];

/** What a tenant writes who means harm; each is harmless, or left out. */
function hostileObjects(site: Site): readonly unknown[] {
  const port = [{ name: "web", port: SERVICE_PORT, targetPort: SERVER_PORT }];
  const slice = (name: string, family: IPFamily, targetPort: number, addresses: readonly string[]): unknown => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { namespace: "default", name: `${name}-${family.toLowerCase()}`, labels: { "kubernetes.io/service-name": name } },
    addressType: family,
    ports: [{ name: "web", protocol: "TCP", port: targetPort }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
  const ofBoth = (of: (family: IPFamily) => string): readonly string[] => FAMILIES.map(of);
  return [
    serviceManifest({ name: "loopback", clusterIPs: ofBoth((family) => LOOPBACK_IP[family]), ports: port }),
    slice("loopback", "IPv4", ON_LOOPBACK.port, ["127.0.0.1", "127.1.2.3", "169.254.169.254", "0.0.0.0"]),
    slice("loopback", "IPv6", ON_LOOPBACK.port, ["::1", "fe80::1", "::", "::ffff:127.0.0.1"]),
    serviceManifest({
      name: "thief",
      clusterIPs: ["10.96.9.2", "fd00:96::902"],
      ports: port,
      externalIPs: ofBoth((family) => OUTSIDE[family]),
      ingress: [...ofBoth((family) => OUTSIDE[family]), ""].map((ip) => ({ ip })),
    }),
    ...FAMILIES.map((family) => slice("thief", family, SERVER_PORT, [site.place("pod-1-2").address(family)])),
    serviceManifest({
      name: "injects",
      clusterIPs: ["10.96.9.3", "fd00:96::903"],
      ports: [{ name: 'web"; flush ruleset; #', port: SERVICE_PORT }],
    }),
  ];
}

/** Attacks of the rows of docs/security.md, with packets; each backend in turn on one cluster. node2 is a neighbour on node1's link and runs no proxy. */
describe("attacks", { ...NEEDS, timeout: TIMEOUT_MS }, () => {
  let site: Site;
  let victim: TestService;
  beforeAll(async () => {
    const nodes = ["node1", "node2"].map((name, index) => ({ name, zone: "a", pods: index === 0 ? 3 : 1 }));
    site = await createSite({
      nodes,
      layout: "one process",
      proxied: ["node1"],
      cgroups: ["node1"],
      isInParts: true,
      flags: FLAGS,
    });
    const [node1, node2] = [site.place("node1"), site.place("node2")];
    await node1.agent().serve({ name: "loopback", transport: "TCP", ...ON_LOOPBACK });
    await node2.run("sh", ["-c", TO_NODE1, "sh", node1.address("IPv4"), node2.address("IPv4")]);
    const { fabric } = site.cluster;
    for (const address of Object.values(OUTSIDE)) {
      await fabric.run("ip", ["address", "add", address, "dev", "lo"]);
      await fabric.agent().serve({ name: "outside", transport: "TCP", port: SERVICE_PORT, address });
    }
    victim = await site.services.create({ endpoints: ["pod-1-2"], protocols: ["TCP"] });
    await site.api.apply(hostileObjects(site));
    await site.waitForSync();
  });
  afterAll(() => site?.destroy());

  const attempt = async (from: string, request: TargetRequest): Promise<string> => {
    const { outcome, server } = await site
      .place(from)
      .agent()
      .attempt({ timeoutMs: 1000, ...request });
    return server ?? outcome;
  };

  const startWith = async (backend: string, ...flags: readonly string[]): Promise<void> => {
    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    proxy.start([...FLAGS, "--backend", backend, ...flags]);
    await site.waitForSync();
  };

  describe.each(["nft", "userspace", "ebpf", "iptables"])("with the backend %s", (backend) => {
    beforeAll(async () => {
      await startWith(backend);
      // It keeps the rules of the backend before it, and as long as they are there no packet comes to it.
      if (backend === "userspace") await site.place("node1").run("nft", ["flush", "ruleset"]);
    });

    it("CVE-2020-8558: a neighbour doesn't reach what listens on 127.0.0.1", async () => {
      expect(await attempt("node1", ON_LOOPBACK)).toBe("loopback");
      expect(await attempt("node2", ON_LOOPBACK)).not.toBe("loopback");
      const { stdout } = await site.place("node1").run("cat", ["/proc/sys/net/ipv4/conf/all/route_localnet"]);
      // Of these iptables alone serves node ports on 127.0.0.1, and then it is the guard that holds.
      expect(stdout.trim() === "1").toBe(backend === "iptables");
    });

    it.each(FAMILIES)(
      "CVE-2020-8554: an address that isn't allowed stays the Internet's; one that is allowed works (%s)",
      async (family) => {
        expect(await attempt("pod-1-3", { address: OUTSIDE[family], port: SERVICE_PORT })).toBe("outside");
        expect(await attempt("node1", { address: OUTSIDE[family], port: SERVICE_PORT })).toBe("outside");
        expect(await reach(site, victim, family, { from: "client1", way: "externalIP" })).toMatch(/^pod-1-2 saw /);
        expect(await reach(site, victim, family, { from: "client1", way: "loadBalancerIP" })).toMatch(/^pod-1-2 saw /);
      },
    );

    it.each(FAMILIES)("CVE-2021-25737: endpoints at loopback and link-local addresses lead nowhere (%s)", async (family) => {
      // The host itself learns of it over IPv6 when its SYN goes out again, after a second. userspace accepts, and has nobody to go to.
      const outcome = backend === "userspace" ? "reset" : "refused";
      for (const from of ["pod-1-3", "node1"])
        expect(await attempt(from, { address: LOOPBACK_IP[family], port: SERVICE_PORT, timeoutMs: 5000 })).toBe(outcome);
    });

    // As with kube-proxy's nftables mode, it takes a liberal conntrack (below); without it the attack works. eBPF and userspace translate nothing here.
    it.each(FAMILIES)("k/k#74839: a segment outside of its window resets no connection, but with nft (%s)", async (family) => {
      expect((await afterStray(family)).state).toBe(backend === "nft" ? "reset" : "open");
    });

    it.each(FAMILIES)("text of tenants is in no rule, and everything else works (%s)", async (family) => {
      const { stdout } = await site.place("node1").run("sh", ["-c", "nft list ruleset; iptables-save; ip6tables-save"]);
      expect(stdout).not.toContain("flush ruleset");
      const seen = backend === "userspace" ? "node1" : "pod-1-3";
      expect(await reach(site, victim, family, { from: "pod-1-3", way: "clusterIP" })).toBe(`pod-1-2 saw ${seen}`);
    });
  });

  /**
   * What becomes of a client's connection when the endpoint's host sends segments that are outside of its window. More than one: a reset for it counts
   * only if nothing else has come to the server since (RFC 5961), which is luck on a busy machine.
   */
  const afterStray = async (family: IPFamily): Promise<HoldStatus> => {
    const client = site.place("pod-1-3").agent();
    const server = site.place("pod-1-2");
    const held = await client.hold({ ...victim.target("clusterIP", family), everyMs: 20 });
    for (let stray = 0; stray < STRAYS && (await client.holdStatus(held)).state === "open"; stray++) {
      await server.agent().sendStray({ address: server.address(family), port: SERVER_PORT });
      const { answers } = await client.holdStatus(held);
      // Two more answers, of which one was asked for after it came; or an end.
      await expect
        .poll(async () => {
          const now = await client.holdStatus(held);
          return now.state !== "open" || now.answers > answers + 2;
        })
        .toBe(true);
    }
    return await client.release(held);
  };

  /** nft in the place of iptables, whose rules are removed once nft's are in force. */
  const withoutIptables = async (): Promise<void> => {
    await startWith("nft", "--conntrack-tcp-be-liberal");
    const rules = async (): Promise<string> => (await site.place("node1").run("iptables-save", [])).stdout;
    await expect.poll(rules).not.toContain("KUBE-FORWARD");
  };

  it("each of them is reported once by each process", () => {
    const lines = site.proxy("node1").log().split("\n");
    const about = (text: string): number => lines.filter((line) => line.includes(text)).length;
    const counts = ["external IP outside the ranges allowed", "load-balancer IP outside the ranges allowed", "loopback endpoint"].map(
      about,
    );
    // nft twice, userspace, eBPF, iptables; slices are of one family.
    expect(counts).toEqual([5, 5, 5 * FAMILIES.length]);
  });

  it("CVE-2020-8558: when another backend has taken over from iptables, its guard holds on", async () => {
    await withoutIptables();
    expect(await attempt("node2", ON_LOOPBACK)).not.toBe("loopback");
  });

  it.each(FAMILIES)("k/k#74839: nor with nft where conntrack is liberal (%s)", async (family) => {
    expect((await afterStray(family)).state).toBe("open");
  });

  it("the neighbour's attack works where nothing keeps it off", async () => {
    const node1 = site.place("node1");
    await site.proxy("node1").end("SIGTERM");
    await node1.run("sh", setLocalnet(1));
    await node1.run("sh", ["-c", "iptables -F; nft flush ruleset"]);
    expect(await attempt("node2", ON_LOOPBACK)).toBe("loopback");
  });
});

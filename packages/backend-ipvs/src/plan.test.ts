import type { IPFamily, Plain } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";

const BALANCED = { type: "LoadBalancer", ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }] };
const INGRESS = [{ ip: "198.51.100.7" }];
const [HERE, THERE] = ["10.1.1.1", "10.1.2.1"] as const;

const balanced = (endpoints: readonly string[], spec: RawObject = {}): readonly RawObject[] =>
  cart(endpoints, { ...BALANCED, ...spec }, INGRESS);
const LOCAL = { externalTrafficPolicy: "Local" };

/** The plan that leads from one state to another, as text. */
async function planText(
  before: readonly RawObject[] | undefined,
  after: readonly RawObject[],
  options: Readonly<Record<string, Plain>> = {},
  family: IPFamily = "IPv4",
): Promise<string> {
  const proxy = await openProxy(createFakeHost().world, options, family);
  if (before !== undefined) await proxy.sync(before);
  const text = proxy.planText(after);
  expect(proxy.ledger.defects.size).toBe(0);
  return text;
}

describe("golden plans", () => {
  it.each<[string, readonly RawObject[] | undefined, readonly RawObject[]]>([
    ["nothing", undefined, []],
    ["service-added", [], cart([HERE, THERE])],
    ["balanced-added", [], balanced([HERE, THERE])],
    ["source-ranges-added", balanced([HERE]), balanced([HERE], { loadBalancerSourceRanges: ["203.0.113.0/24", "172.18.0.0/16"] })],
    ["policy-to-local", balanced([HERE, THERE]), balanced([HERE, THERE], LOCAL)],
    ["policy-to-cluster", balanced([HERE, THERE], LOCAL), balanced([HERE, THERE])],
    ["last-local-endpoint-gone", balanced([HERE, THERE], LOCAL), balanced([THERE], LOCAL)],
    ["endpoint-added", cart([HERE]), cart([HERE, THERE])],
    ["endpoint-removed", cart([HERE, THERE]), cart([HERE])],
    ["affinity-switched-on", cart([HERE]), cart([HERE], { sessionAffinity: "ClientIP" })],
    ["service-removed", balanced([HERE, THERE], LOCAL), []],
  ])("%s", async (name, before, after) => {
    await expect(await planText(before, after)).toMatchFileSnapshot(`../test/golden/${name}.txt`);
  });

  it("of a host whose own address is a load-balancer IP", async () => {
    const after = cart([HERE, THERE], { ...BALANCED, ...LOCAL }, [{ ip: "172.18.0.1" }]);
    await expect(await planText([], after)).toMatchFileSnapshot("../test/golden/own-address.txt");
  });

  it("of IPv6", async () => {
    const after = [
      ...cart([], { clusterIP: "fd00:96::1" }),
      ...cart(["fd00:1::1"], { clusterIP: "fd00:96::1" }).map((object) => ({
        ...object,
        ...("endpoints" in object ? { addressType: "IPv6" } : {}),
      })),
    ];
    await expect(await planText([], after, {}, "IPv6")).toMatchFileSnapshot("../test/golden/service-added.IPv6.txt");
  });

  it("with all options that are seen in the kernel", async () => {
    const options = { scheduler: "lc", schedulers: { "shop/cart": "sh" }, strictARP: true, tcpTimeout: "15m", udpTimeout: 30 };
    await expect(await planText(undefined, cart([HERE]), options)).toMatchFileSnapshot("../test/golden/options.txt");
  });
});

it("rules of another mode go when everything else is there, and the filter comes before addresses", async () => {
  const host = createFakeHost();
  const others = `*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-X - [0:0]\n-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -j KUBE-SVC-X\nCOMMIT\n`;
  await host.world.exec.run("iptables-nft-restore", ["--noflush"], { input: others });
  const text = (await openProxy(host.world)).planText(cart([HERE]));
  const words = ["*filter", "ipvs add TCP 10.96.0.1:80 10.1.1.1:8080", "ip address add 10.96.0.1", "*nat"];
  const places = words.map((one) => text.indexOf(one));
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((one, other) => one - other));
});

it("nothing is written for what is there already", async () => {
  const host = createFakeHost();
  const objects = balanced([HERE, THERE], { ...LOCAL, loadBalancerSourceRanges: ["203.0.113.0/24"] });
  await (await openProxy(host.world)).sync(objects);
  expect((await openProxy(host.world)).planText(objects)).toBe("# nothing to do\n");
});

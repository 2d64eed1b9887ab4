import type { IPFamily, Plain } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { FakeHostOptions } from "./testing/index.ts";

const PORTS = [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }];
const INGRESS = [{ ip: "198.51.100.7" }];
const [HERE, THERE, ELSEWHERE] = ["10.1.1.1", "10.1.2.1", "192.0.2.7"] as const;
const LOCAL = { externalTrafficPolicy: "Local" };

const balanced = (endpoints: readonly string[], spec: RawObject = {}): readonly RawObject[] =>
  cart(endpoints, { type: "LoadBalancer", ports: PORTS, externalIPs: ["198.51.100.8"], ...spec }, INGRESS);

interface Place {
  readonly host?: FakeHostOptions;
  readonly options?: Readonly<Record<string, Plain>>;
  readonly family?: IPFamily;
}

const OVERLAY: Place = { host: { network: "overlay" }, options: { sourceVip: "10.1.1.200" } };

/** The plan that leads from one state to another, as text. */
async function planText(
  before: readonly RawObject[] | undefined,
  after: readonly RawObject[],
  { host, options = {}, family = "IPv4" }: Place = {},
): Promise<string> {
  const proxy = await openProxy(createFakeHost(host).world, options, family);
  if (before !== undefined) await proxy.apply(before);
  const text = proxy.planText(after);
  expect(proxy.ledger.defects.size).toBe(0);
  return text;
}

describe("golden plans", () => {
  it.each<[string, readonly RawObject[] | undefined, readonly RawObject[], Place?]>([
    ["nothing", undefined, []],
    ["service-added", [], cart([HERE, THERE])],
    ["service-added.IPv6", [], cart(["fd00:1:1::1", "fd00:1:2::1"]), { family: "IPv6" }],
    ["service-added.overlay", undefined, cart([HERE, THERE]), OVERLAY],
    ["service-with-a-host-as-endpoint.overlay", undefined, cart([HERE, "172.18.0.2"]), OVERLAY],
    ["service-with-an-endpoint-outside.overlay", undefined, cart([THERE, ELSEWHERE]), OVERLAY],
    ["balanced-added", [], balanced([HERE, THERE])],
    ["balanced-added.no-dsr", [], balanced([HERE, THERE]), { options: { enableDSR: false } }],
    ["balanced-added.preserving", [], balanced([HERE, THERE]), { options: { "preserve-destination": ["shop/cart"] } }],
    ["balanced-added.health", [], balanced([HERE, THERE]), { options: { forwardHealthCheckVip: true } }],
    [
      "balanced-added.health-of-the-service",
      [],
      balanced([HERE, THERE], { ...LOCAL, healthCheckNodePort: 31_234 }),
      { options: { forwardHealthCheckVip: true, rootHnsEndpointName: "cbr0" } },
    ],
    ["policy-to-local", balanced([HERE, THERE]), balanced([HERE, THERE], LOCAL)],
    ["last-local-endpoint-gone", balanced([HERE, THERE], LOCAL), balanced([THERE], LOCAL)],
    ["last-endpoint-gone", cart([THERE]), cart([])],
    ["endpoint-added", cart([HERE]), cart([HERE, THERE])],
    ["endpoint-removed", cart([HERE, THERE]), cart([HERE])],
    ["affinity-switched-on", cart([HERE]), cart([HERE], { sessionAffinity: "ClientIP" })],
    ["service-removed", balanced([HERE, THERE]), []],
  ])("%s", async (name, before, after, place) => {
    await expect(await planText(before, after, place)).toMatchFileSnapshot(`../test/golden/${name}.txt`);
  });
});

it("nothing is written for what is there already", async () => {
  const host = createFakeHost();
  await (await openProxy(host.world)).apply(balanced([HERE, THERE], LOCAL));
  const written = host.hns.written;
  const proxy = await openProxy(host.world);
  expect(proxy.planText(balanced([HERE, THERE], LOCAL))).toBe("# nothing to do\n");
  expect(host.hns.written).toBe(written);
});

it("what goes waits for what comes at the same port, as a node port takes over from an address of the host", async () => {
  const proxy = await openProxy(createFakeHost().world);
  const ports = (port: number): readonly unknown[] => [{ name: "http", protocol: "TCP", port }];
  await proxy.apply(cart([HERE], { clusterIP: "10.96.0.2", ports: ports(30_080), externalIPs: ["172.18.0.1"] }));
  const lines = proxy
    .planText(balanced([HERE]))
    .trimEnd()
    .split("\n");
  const [gone, come] = ["delete loadbalancer TCP 172.18.0.1:30080", "create loadbalancer TCP *:30080"].map((start) =>
    lines.findIndex((line) => line.startsWith(start)),
  );
  expect([come, gone]).not.toContain(-1);
  expect(gone).toBeGreaterThan(come ?? 0);
});

it("the newest load balancer comes right after its endpoints, and those that go take turns with those that come", async () => {
  const proxy = await openProxy(createFakeHost().world);
  await proxy.apply(balanced([HERE, THERE]));
  const other = cart([ELSEWHERE], { clusterIP: "10.96.0.2", externalIPs: ["198.51.100.9"] });
  const lines = proxy.planText(other).trimEnd().split("\n");
  const places = ["create endpoint 192.0.2.7", "create loadbalancer TCP 10.96.0.2:80", "delete loadbalancer TCP 10.96.0.1:80"];
  const found = places.map((start) => lines.findIndex((line) => line.startsWith(start)));
  expect(found).toEqual([0, 1, 2]);
  expect(lines.slice(-2).every((line) => /^(?:delete|leave) endpoint/.test(line))).toBe(true);
});

import { describe, expect, it } from "vitest";
import type { Store } from "../state/store.ts";
import { rawService } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { createStoreView, upsertRaw } from "../testing/view.ts";

/** A Service with so many ports, external IPs, load-balancer IPs and source ranges. */
function sized(ports: number, externalIPs: number, ingress = 0, ranges = 0, spec: RawObject = {}): RawObject {
  const list = <T>(count: number, item: (index: number) => T): readonly T[] => Array.from({ length: count }, (_, index) => item(index));
  const address = (index: number): string => `${index >> 8}.${index & 255}`;
  return rawService(
    "big",
    {
      type: "LoadBalancer",
      ports: list(ports, (index) => ({ name: `p${index}`, port: 1 + index, nodePort: 30_000 + index })),
      externalIPs: list(externalIPs, (index) => `203.0.${address(index)}`),
      loadBalancerSourceRanges: list(ranges, (index) => `9.1.${address(index)}/32`),
      ...spec,
    },
    { ingress: list(ingress, (index) => ({ ip: `198.51.${address(index)}` })) },
  );
}

function kept(store: Store): unknown {
  const service = store.service("shop/big");
  const { clusterIP, externalIPs, loadBalancerIPs } = service?.addresses.IPv4 ?? {};
  return service && { clusterIP, externalIPs, loadBalancerIPs, nodePorts: service.ports.map(({ nodePort }) => nodePort) };
}

describe("R-67 what one Service may ask for by itself", () => {
  it.each([
    ["5,000 ports with two cluster IPs and two load-balancer IPs", sized(5_000, 0, 2, 0, { clusterIPs: ["10.96.0.1", "fd00::1"] }), true],
    ["20,000 ports", sized(20_000, 0), true],
    ["20,001 ports", sized(20_001, 0), false],
    ["19,999 external IPs", sized(1, 19_999), true],
    ["20,000 external IPs and a cluster IP", sized(1, 20_000), false],
    ["no port, and too many addresses", sized(0, 20_000), false],
    ["300 ports with 5,000 external IPs", sized(300, 5_000), false],
    ["10,000 source ranges for two load-balancer IPs", sized(1, 0, 2, 10_000), true],
    ["5,000 source ranges for two ports of two load-balancer IPs", sized(2, 0, 2, 5_000), true],
    ["10,001 source ranges for two load-balancer IPs", sized(1, 0, 2, 10_001), false],
    ["10,001 source ranges without a load-balancer IP", sized(1, 0, 0, 10_001), false],
  ])("%s", (_name, raw, isIn) => {
    const { store, issues } = createStoreView([raw]);
    expect([store.service("shop/big") !== undefined, issues.map(({ object }) => object)]).toEqual([isIn, isIn ? [] : ["Service shop/big"]]);
  });

  it("a version beyond it changes nothing but what it no longer names, and is reported until there is another one", () => {
    const { store, issues } = createStoreView([sized(2, 2, 2)]);
    const before = kept(store);
    upsertRaw(store, sized(300, 5_000, 2));
    expect(kept(store)).toEqual(before);
    upsertRaw(store, sized(300, 5_000, 2));
    expect(issues).toEqual([
      {
        object: "Service shop/big",
        what: 'too many ports times addresses, the Service stays as it was with the addresses and node ports that it still names: "10.96.0.1: 300 x 5003"',
        hint: "split the Service: at most 20000 are allowed, with 10000 source ranges",
      },
    ]);
    upsertRaw(store, sized(1, 1, 30_000));
    expect(kept(store)).toEqual({
      clusterIP: "10.96.0.1",
      externalIPs: ["203.0.0.0"],
      loadBalancerIPs: ["198.51.0.0", "198.51.0.1"],
      nodePorts: [30_000, 0],
    });
    // They may be other Services' by now.
    upsertRaw(store, sized(0, 0, 30_000, 0, { clusterIP: "10.96.0.2" }));
    expect(store.service("shop/big")).toMatchObject({ addresses: {}, healthCheckNodePort: 0 });
    upsertRaw(store, sized(1, 0));
    expect([kept(store), [...store.issues()]]).toEqual([
      { clusterIP: "10.96.0.1", externalIPs: [], loadBalancerIPs: [], nodePorts: [30_000] },
      [],
    ]);
  });

  it.each<[string, RawObject, RawObject]>([
    [
      "the cluster IP of a Service that is an ExternalName now",
      { type: "ExternalName", clusterIP: undefined, externalIPs: ["10.96.0.1"] },
      {},
    ],
    ["the cluster IP of a Service that is headless now", { clusterIP: "None", externalIPs: ["10.96.0.1"] }, {}],
    ["a cluster IP that an ExternalName Service still has", { type: "ExternalName" }, {}],
    [
      "a load-balancer IP that it names as external IP now",
      { externalIPs: ["198.51.0.0"] },
      { IPv4: { clusterIP: "10.96.0.1", externalIPs: [], loadBalancerIPs: [], sourceRanges: [] } },
    ],
  ])("a version beyond it does not keep %s", (_name, spec, addresses) => {
    const { store } = createStoreView([sized(1, 1, 1)]);
    upsertRaw(store, sized(1, 0, 0, 10_001, spec));
    expect(store.service("shop/big")?.addresses).toEqual(addresses);
  });

  it("a Service beyond it keeps nothing of an earlier one of its name", () => {
    const withUID = (raw: RawObject, uid: string): RawObject => ({ ...raw, metadata: { ...(raw["metadata"] as RawObject), uid } });
    const { store } = createStoreView([withUID(sized(1, 1), "a")]);
    upsertRaw(store, withUID(sized(300, 5_000), "b"));
    expect(store.service("shop/big")).toBeUndefined();
  });
});

import type { IPFamily, Plain } from "@turnout/core";
import { rawNode, rawService, rawSlice, stateOfObjects, TestProxy } from "@turnout/core/testing";
import type { RawObject, WantedState } from "@turnout/core/testing";
import type { WinkernelFacts } from "../facts.ts";
import { winkernelModule } from "../module.ts";
import type { WinkernelObject } from "../objects.ts";
import type { Step } from "../plan.ts";
import type { WinkernelWorld } from "../world.ts";

const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] });

/** A Service `cart` at 10.96.0.1:80 with endpoints: those in 10.1.1.0/24 and fd00:1:1::/64 are on node1, others on node2. */
export function cart(endpoints: readonly string[], spec: RawObject = {}, ingress?: readonly unknown[]): readonly RawObject[] {
  const isIPv6 = endpoints.some((ip) => ip.includes(":"));
  const isHere = (ip: string): boolean => ip.startsWith("10.1.1.") || ip.startsWith("fd00:1:1:");
  const slice = rawSlice(
    "cart",
    endpoints.map((ip) => ({ ip, node: isHere(ip) ? "node1" : "node2" })),
  );
  return [
    rawService("cart", { ...(isIPv6 ? { clusterIP: "fd00:96::1" } : {}), ...spec }, ingress === undefined ? {} : { ingress }),
    { ...slice, ...(isIPv6 ? { addressType: "IPv6" } : {}) },
  ];
}

/** What a proxy of the tests wants: API objects. */
export type WinkernelProxy = TestProxy<WinkernelFacts, WinkernelObject, Step, readonly RawObject[]>;

/** Open one family of the backend, and look at what is there. */
export async function openProxy(
  world: WinkernelWorld,
  raw: Readonly<Record<string, Plain>> = {},
  family: IPFamily = "IPv4",
): Promise<WinkernelProxy> {
  const stateOf = (objects: readonly RawObject[]): WantedState => stateOfObjects([NODE, ...objects], { family });
  const proxy = await TestProxy.open(winkernelModule, world, { raw, family, stateOf });
  await proxy.adopt();
  return proxy;
}

import type { IPFamily, Plain } from "@turnout/core";
import { rawNode, rawService, rawSlice, stateOfObjects, TestProxy } from "@turnout/core/testing";
import type { RawObject, WantedState } from "@turnout/core/testing";
import { ipvsModule } from "../module.ts";
import type { IpvsObject } from "../objects.ts";
import type { IpvsFacts } from "../options.ts";
import type { Step } from "../plan.ts";
import type { IpvsWorld } from "../world.ts";

/** node1's addresses. */
const FACTS: IpvsFacts = { addresses: { IPv4: ["172.18.0.1"], IPv6: ["fd00:18::1"] } };
const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] });

/** A Service `cart` at 10.96.0.1:80 with endpoints; `2` among them is on another node. */
export function cart(endpoints: readonly string[], spec: RawObject = {}, ingress?: readonly unknown[]): readonly RawObject[] {
  const ports = spec["ports"] as readonly { readonly name: string; readonly protocol: string }[] | undefined;
  const slicePorts = ports?.map(({ name, protocol }) => ({ name, protocol, port: 8080 }));
  return [
    rawService("cart", spec, ingress === undefined ? {} : { ingress }),
    rawSlice(
      "cart",
      endpoints.map((ip) => ({ ip, node: ip.startsWith("10.1.1.") ? "node1" : "node2" })),
      slicePorts === undefined ? {} : { ports: slicePorts },
    ),
  ];
}

/** What a proxy of the tests wants: API objects. */
export type IpvsProxy = TestProxy<IpvsFacts, IpvsObject, Step, readonly RawObject[]>;

/** Open one family of the backend, and look at what is there. */
export async function openProxy(
  world: IpvsWorld,
  raw: Readonly<Record<string, Plain>> = {},
  family: IPFamily = "IPv4",
): Promise<IpvsProxy> {
  const stateOf = (objects: readonly RawObject[]): WantedState => stateOfObjects([NODE, ...objects], { family });
  const proxy = await TestProxy.open(ipvsModule, world, { raw, family, host: FACTS, stateOf });
  await proxy.adopt();
  return proxy;
}

import { expect, test } from "vitest";
import { abilitiesOf, ALL_CAPABILITIES } from "../contract/capabilities.ts";
import type { Variants } from "../contract/capabilities.ts";
import { createStoreView, rawNode, rawService, rawSlice } from "../testing/index.ts";
import type { RawObject } from "../testing/index.ts";
import { walkPacket } from "./walk.ts";

interface Asked {
  readonly named?: readonly string[];
  readonly spec?: RawObject;
  readonly protocol?: "TCP" | "UDP";
  readonly nodePortsOnLoopback?: Variants["nodePortsOnLoopback"];
}

/** What `turnout why` makes of a packet of the host for a node port on 127.0.0.1: its fate, the rule of its last step, and its causes. */
function why({ named = ["localhost"], spec = {}, protocol = "TCP", nodePortsOnLoopback = "TCP" }: Asked): readonly unknown[] {
  const ports = [{ name: "http", port: 80, protocol, nodePort: 30_080 }];
  const endpoints = [{ ip: "10.1.2.5", node: "node2" }];
  const objects = [
    rawNode("node1"),
    rawService("web", { type: "NodePort", ports, ...spec }),
    rawSlice("web", endpoints, { ports: [{ name: "http", port: 8080, protocol }] }),
  ];
  const { view, pull } = createStoreView(objects);
  const node = pull()?.node;
  if (node === undefined) throw new Error("the first change set has a node");
  const state = {
    node: { ...node, settings: { ...node.settings, nodePortAddresses: named } },
    rows: [...view.rows.values()],
    hostAddresses: ["127.0.0.1", "172.18.0.1"],
    nodePortAddressesDefault: [],
    ...abilitiesOf({ capabilities: ALL_CAPABILITIES, variants: { nodePortsOnLoopback } }),
    issues: [],
  };
  const packet = { family: "IPv4", protocol, source: "127.0.0.1", destination: "127.0.0.1", port: 30_080, device: "" } as const;
  const { fate, steps, causes } = walkPacket(state, packet);
  const to =
    fate.is === "forward"
      ? fate.endpoints.map(({ ip, port, masquerade }) => `${ip}:${port}${masquerade ? "*" : ""} at ${fate.at}`)
      : fate.is;
  return [to, steps.at(-1)?.rule, causes.map(({ id }) => id)];
}

test.each<[string, Asked, readonly unknown[]]>([
  ["TCP where loopback is named", {}, [["10.1.2.5:8080 at process"], "R-38", []]],
  ["UDP there", { protocol: "UDP" }, ["reject", "R-38", []]],
  ["the Local policy without an endpoint here", { spec: { externalTrafficPolicy: "Local" } }, ["reject", "R-38", ["local_policy"]]],
  ["loopback that is not named", { named: ["primary"] }, ["pass", undefined, ["node_port_loopback"]]],
  ["a backend that does not leave it to the process", { nodePortsOnLoopback: "never" }, ["pass", undefined, ["node_port_loopback"]]],
])("R-38 %s", (_name, asked, expected) => {
  expect(why(asked)).toEqual(expected);
});

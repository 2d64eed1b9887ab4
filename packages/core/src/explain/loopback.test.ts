import { expect, test } from "vitest";
import type { Variants } from "../contract/capabilities.ts";
import { askedPacket, explainedState } from "../test-support/explained.ts";
import { rawService, rawSlice } from "../testing/index.ts";
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
    rawService("web", { type: "NodePort", ports, ...spec }),
    rawSlice("web", endpoints, { ports: [{ name: "http", port: 8080, protocol }] }),
  ];
  const settings = { ...explainedState([]).node.settings, nodePortAddresses: named };
  const state = explainedState(objects, { node: { settings }, variants: { nodePortsOnLoopback } });
  const packet = askedPacket({ protocol, source: "127.0.0.1", destination: "127.0.0.1", port: 30_080, device: "" });
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

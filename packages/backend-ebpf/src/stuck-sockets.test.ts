import type { FlowFilter } from "@turnout/core/backend";
import { describe, expect, it } from "vitest";
import type { Peer } from "./peers.ts";
import { isStuck } from "./stuck-sockets.ts";

const peer: Peer = { socket: 1n, endpoint: { address: "10.1.1.20", port: 8080 }, asked: { address: "10.96.0.2", port: 80 } };
const flow: FlowFilter = { protocol: "UDP", address: "10.96.0.2", port: 80, keep: ["10.1.1.25:8080"] };
const nodePort: FlowFilter = { ...flow, address: "", port: 30_002 };
const atNode: Peer = { ...peer, asked: { address: "172.18.0.1", port: 30_002 } };

describe("a socket is stuck", () => {
  it.each<[string, Peer, FlowFilter, boolean]>([
    ["when its endpoint does not serve", peer, flow, true],
    ["unless its endpoint serves", peer, { ...flow, keep: ["10.1.1.20:8080"] }, false],
    ["unless only another port of the endpoint serves", peer, { ...flow, keep: ["10.1.1.20:8081"] }, true],
    ["unless it asked for another address", peer, { ...flow, address: "10.96.0.3" }, false],
    ["unless it asked for another port", peer, { ...flow, port: 81 }, false],
    ["unless another endpoint is meant", peer, { ...flow, only: ["10.1.1.21:8080"] }, false],
    ["when its endpoint is meant", peer, { ...flow, only: ["10.1.1.20:8080"] }, true],
    ["when it asked for a node port", atNode, nodePort, true],
    [
      "unless it asked for the same port of another address",
      { ...atNode, asked: { address: "198.51.100.1", port: 30_002 } },
      nodePort,
      false,
    ],
    ["also of IPv6", { ...peer, endpoint: { address: "fd00::1", port: 53 } }, { ...flow, keep: ["[fd00::1]:53"] }, false],
  ])("%s", (_, one, filter, expected) => expect(isStuck(one, filter, (address) => address === "172.18.0.1")).toBe(expected));
});

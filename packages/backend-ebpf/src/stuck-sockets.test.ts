import { ProxyError } from "@turnout/core/backend";
import type { FlowFilter } from "@turnout/core/backend";
import type { Sockets } from "@turnout/host/bpf";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ebpfModule } from "./module.ts";
import type { Peer } from "./peers.ts";
import { isStuck } from "./stuck-sockets.ts";
import { Takeover } from "./test-support/takeover.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/index.ts";
import type { EbpfWorld } from "./world.ts";

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

describe("forgetting", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  const UDP = { name: "udp", number: 2, protocol: "UDP", local: 1 };
  const GONE: FlowFilter = { ...flow, keep: [] };
  const NO = new ProxyError("permission_denied", "no (EPERM)");
  const { signal } = new AbortController();
  let host: EbpfFakeHost;

  /** A node that serves UDP, to whose endpoint two pods are connected by sockets, and a client outside by packets. */
  beforeEach(async () => {
    host = createFakeHost();
    const takeover = new Takeover(host, [UDP]);
    await takeover.done();
    await takeover.end();
    for (const [source, link] of [
      ["10.1.1.1", "veth1"],
      ["10.1.1.2", "veth2"],
      ["203.0.113.1", "eth0"],
    ] as const)
      host.connect({ family: "IPv4", protocol: "UDP", source, destination: "10.96.0.2", port: 80, link }, () => 0);
  });

  const left = (): readonly string[] => host.flows.map(({ source }) => source).toSorted();

  async function forget(changes: Partial<EbpfWorld>): Promise<number> {
    const dataplane = await ebpfModule.open(ebpfModule.parseOptions({}), { ...host.world, ...changes }, signal);
    try {
      return (await dataplane.family("IPv4").forgetFlows?.([GONE], signal)) ?? 0;
    } finally {
      await dataplane.close(signal);
    }
  }

  /** Sockets of some network namespaces can't be dealt with. */
  function refusing(isRefused: (namespace: string) => boolean, error: ProxyError = NO): Pick<EbpfWorld, "sockets"> {
    const sockets = (namespace: string): Sockets => ({
      ...host.world.sockets(namespace),
      ...(isRefused(namespace) ? { connectedTo: () => Promise.reject(error) } : {}),
    });
    return { sockets };
  }

  it("ends sockets in all network namespaces, and takes flows of packets from conntrack", async () => {
    expect(left()).toEqual(["10.1.1.1", "10.1.1.2", "203.0.113.1"]);
    expect([await forget({}), left()]).toEqual([3, []]);
  });

  it("goes on where one network namespace can't be entered, and says of how many that is so and why", async () => {
    const refused = refusing((namespace) => namespace.endsWith("pod-1-1"));
    const why = "[permission_denied] sockets could not be ended in 1 of 4 network namespaces: [permission_denied] no (EPERM)";
    await expect(forget(refused)).rejects.toThrow(why);
    expect(left()).toEqual(["10.1.1.1"]);
  });

  it("takes flows of packets where no socket can be ended at all, and ends sockets where conntrack refuses", async () => {
    await expect(forget(refusing(() => true))).rejects.toThrow("in 4 of 4 network namespaces");
    expect(left()).toEqual(["10.1.1.1", "10.1.1.2"]);
    const deleteFlows = (): Promise<never> => Promise.reject(new ProxyError("tool_failed", "conntrack says no"));
    const netlink = { ...host.world.netlink, deleteFlows };
    await expect(forget({ netlink, ...refusing(() => true) })).rejects.toThrow(/conntrack says no; .* in 4 of 4 network namespaces/);
    await expect(forget({ netlink })).rejects.toThrow("[tool_failed] conntrack says no");
    expect(left()).toEqual([]);
  });

  it("takes a network namespace that is gone for one without sockets", async () => {
    const gone = new ProxyError("not_found", "it is gone");
    expect(await forget(refusing((namespace) => namespace.endsWith("pod-1-1"), gone))).toBe(2);
  });
});

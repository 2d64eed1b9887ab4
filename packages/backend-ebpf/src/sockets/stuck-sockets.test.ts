import { hostPort, ProxyError } from "@turnout/core/backend";
import type { FlowFilter } from "@turnout/core/backend";
import type { Elements, Sockets } from "@turnout/host/bpf";
import { beforeEach, describe, expect, it } from "vitest";
import { encodeAddress, encodeEndpoint, STRUCTS } from "../bytes/layout.ts";
import { ebpfModule } from "../module.ts";
import { findStuck } from "./peers.ts";
import { FakeMap } from "../test-support/fake-maps.ts";
import { fakeWorld } from "../test-support/fake-world.ts";
import type { FakeWorld } from "../test-support/fake-world.ts";
import type { EbpfWorld } from "../world.ts";

const flow: FlowFilter = { protocol: "UDP", address: "10.96.0.2", port: 80, keep: ["10.1.1.25:8080"] };
const nodePort: FlowFilter = { ...flow, address: "", port: 30_002 };
const OTHER = "10.96.0.9:80";

/** Elements of `asked_udp` for these sockets: what each got, and what it asked for. */
function peersOf(peers: readonly (readonly [endpoint: string, asked: string])[]): Elements {
  const { bytes, fields } = STRUCTS.peer;
  const keys = peers.map(([endpoint], index) => {
    const key = Buffer.alloc(bytes);
    key.writeBigUInt64LE(BigInt(index + 1), fields.socket[0]);
    encodeEndpoint(endpoint).copy(key, fields.endpoint[0]);
    return key;
  });
  const values = peers.map(([, asked]) => encodeEndpoint(asked));
  return { count: peers.length, keys: Buffer.concat(keys), values: Buffer.concat(values) };
}

function mapOf(peers: Parameters<typeof peersOf>[0]): FakeMap {
  const map = new FakeMap(STRUCTS.peer.bytes, STRUCTS.endpoint.bytes);
  void map.updateMany(peersOf(peers));
  return map;
}

describe("a socket is stuck", () => {
  const ofNode = (address: Buffer): boolean => address.equals(encodeAddress("172.18.0.1"));

  it.each<[string, string, string, FlowFilter, boolean]>([
    ["when its endpoint does not serve", "10.1.1.20:8080", "10.96.0.2:80", flow, true],
    ["unless its endpoint serves", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, keep: ["10.1.1.20:8080"] }, false],
    ["when only another port of the endpoint serves", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, keep: ["10.1.1.20:8081"] }, true],
    ["unless it asked for another address", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, address: "10.96.0.3" }, false],
    ["unless it asked for another port", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, port: 81 }, false],
    ["unless another endpoint is meant", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, only: ["10.1.1.21:8080"] }, false],
    ["when its endpoint is meant", "10.1.1.20:8080", "10.96.0.2:80", { ...flow, only: ["10.1.1.20:8080"] }, true],
    ["when it asked for a node port", "10.1.1.20:8080", "172.18.0.1:30002", nodePort, true],
    ["unless it asked for the same port of another address", "10.1.1.20:8080", "198.51.100.1:30002", nodePort, false],
    ["unless it asked for the same port in the other family", "[fd00::1]:8080", "[fd00:18::1]:30002", nodePort, false],
    ["also of IPv6", "[fd00::1]:53", "[fd00:96::2]:80", { ...flow, address: "fd00:96::2", keep: ["[fd00::2]:53"] }, true],
    ["and of IPv6 unless it serves", "[fd00::1]:53", "[fd00:96::2]:80", { ...flow, address: "fd00:96::2", keep: ["[fd00::1]:53"] }, false],
  ])("%s", async (_, endpoint, asked, filter, expected) => {
    const isOfIPv4 = !filter.address.includes(":");
    const found = await findStuck(
      mapOf([
        ["10.1.1.90:8080", OTHER],
        [endpoint, asked],
      ]),
      [filter],
      isOfIPv4,
      ofNode,
    );
    expect(found.map(({ socket, endpoint: { address, port } }) => [socket, hostPort(address, port)])).toEqual(
      expected ? [[2n, endpoint]] : [],
    );
  });

  it("when one of several changes at its address says so", async () => {
    const flows = [{ ...flow, only: ["10.1.1.21:8080"] }, { ...flow, port: 81 }, flow];
    expect((await findStuck(mapOf([["10.1.1.20:8080", "10.96.0.2:80"]]), flows, true, ofNode)).length).toBe(1);
  });
});

describe("forgetting", () => {
  const GONE: FlowFilter = { ...flow, keep: [] };
  const NO = new ProxyError("permission_denied", "no (EPERM)");
  const { signal } = new AbortController();
  const NAMESPACES = ["node1", "pod-1-1", "pod-1-2", "pod-1-3"];
  const ENDPOINT = "10.1.1.20:8080";
  let world: FakeWorld;
  let asked: FakeMap;
  /** Network namespaces whose sockets are still connected, each with the one of its number. */
  let connected: Set<string>;

  /** A node that serves UDP, to whose endpoint two pods are connected by sockets, and a client outside by packets. */
  beforeEach(() => {
    world = fakeWorld();
    connected = new Set(["pod-1-1", "pod-1-2"]);
    asked = new FakeMap(STRUCTS.peer.bytes, STRUCTS.endpoint.bytes);
    const { keys, values } = peersOf([
      [ENDPOINT, "10.96.0.2:80"],
      [ENDPOINT, "10.96.0.2:80"],
    ]);
    void asked.updateMany({ count: 2, keys, values });
    world.netlink.rememberFlow(
      { family: "IPv4", protocol: "UDP", source: "203.0.113.1", destination: "10.96.0.2", port: 80, link: "eth0" },
      ENDPOINT,
    );
  });

  const left = (): readonly unknown[] => [[...connected], world.netlink.flows.length];

  async function forget(changes: Partial<EbpfWorld>): Promise<number> {
    const maps = {
      openMap: () => asked,
    } as unknown as EbpfWorld["bpf"];
    const pinFiles = { ...world.pinFiles, inode: () => 1, takeOpening: () => false };
    const fakes = { ...world, bpf: maps, pinFiles, namespaces: () => NAMESPACES, ...refusing(() => false) };
    const dataplane = await ebpfModule.open(ebpfModule.parseOptions({}), { ...fakes, ...changes }, signal);
    return (await dataplane.family("IPv4").forgetFlows?.([GONE], signal)) ?? 0;
  }

  /** Sockets of some network namespaces can't be dealt with. */
  function refusing(isRefused: (namespace: string) => boolean, error: ProxyError = NO): Pick<EbpfWorld, "sockets"> {
    return {
      sockets: (namespace): Sockets => ({
        connectedTo: () => {
          if (isRefused(namespace)) return Promise.reject(error);
          const cookie = BigInt(NAMESPACES.indexOf(namespace));
          const remote = { address: "10.1.1.20", port: 8080 };
          return Promise.resolve(connected.has(namespace) ? [{ cookie, remote } as never] : []);
        },
        destroy: () => Promise.resolve(Number(connected.delete(namespace))),
        close: () => undefined,
      }),
    };
  }

  it("ends sockets in all network namespaces, and takes flows of packets from conntrack", async () => {
    expect([left(), asked.elements.size]).toEqual([[["pod-1-1", "pod-1-2"], 1], 2]);
    expect([await forget({}), left(), asked.elements.size]).toEqual([3, [[], 0], 0]);
  });

  it("goes on where one network namespace can't be entered, and says of how many that is so and why", async () => {
    const refused = refusing((namespace) => namespace.endsWith("pod-1-1"));
    const why = "[permission_denied] sockets could not be ended in 1 of 4 network namespaces: [permission_denied] no (EPERM)";
    await expect(forget(refused)).rejects.toThrow(why);
    expect(left()).toEqual([["pod-1-1"], 0]);
  });

  it("takes flows of packets where no socket can be ended at all, and ends sockets where conntrack refuses", async () => {
    await expect(forget(refusing(() => true))).rejects.toThrow("in 4 of 4 network namespaces");
    expect(left()).toEqual([["pod-1-1", "pod-1-2"], 0]);
    const deleteFlows = (): Promise<never> => Promise.reject(new ProxyError("tool_failed", "conntrack says no"));
    const netlink = { ...world.netlink, deleteFlows };
    await expect(forget({ netlink, ...refusing(() => true) })).rejects.toThrow(/conntrack says no; .* in 4 of 4 network namespaces/);
    await expect(forget({ netlink })).rejects.toThrow("[tool_failed] conntrack says no");
    expect(left()).toEqual([[], 0]);
  });

  it("takes a network namespace that is gone for one without sockets", async () => {
    const gone = new ProxyError("not_found", "it is gone");
    expect(await forget(refusing((namespace) => namespace.endsWith("pod-1-1"), gone))).toBe(2);
  });
});

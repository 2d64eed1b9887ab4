import { hostPort, ProxyError } from "@turnout/core/backend";
import type { FlowFilter } from "@turnout/core/backend";
import type { BpfMap, Sockets } from "@turnout/host/bpf";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { encodeAddress, encodeEndpoint, STRUCTS } from "./layout.ts";
import { ebpfModule } from "./module.ts";
import { findStuck } from "./peers.ts";
import { Takeover } from "./test-support/takeover.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/index.ts";
import type { EbpfWorld } from "./world.ts";

const flow: FlowFilter = { protocol: "UDP", address: "10.96.0.2", port: 80, keep: ["10.1.1.25:8080"] };
const nodePort: FlowFilter = { ...flow, address: "", port: 30_002 };
const OTHER = "10.96.0.9:80";

/** `asked_udp` with these sockets: what each got, and what it asked for. */
function mapOf(peers: readonly (readonly [endpoint: string, asked: string])[]): Pick<BpfMap, "read"> {
  const { bytes, fields } = STRUCTS.peer;
  const keys = peers.map(([endpoint], index) => {
    const key = Buffer.alloc(bytes);
    key.writeBigUInt64LE(BigInt(index + 1), fields.socket[0]);
    encodeEndpoint(endpoint).copy(key, fields.endpoint[0]);
    return key;
  });
  const values = peers.map(([, asked]) => encodeEndpoint(asked));
  return {
    async *read() {
      await Promise.resolve();
      yield { count: peers.length, keys: Buffer.concat(keys), values: Buffer.concat(values) };
    },
  };
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

  /** How many sockets programs remember as connected. */
  async function remembered(): Promise<number> {
    const { bpf } = host.world;
    const map = bpf.openMap({ pin: bpf.pins("/sys/fs/bpf/turnout").find(({ path }) => path.endsWith("/asked_udp"))?.path ?? "" });
    let all = 0;
    for await (const { count } of map.read()) all += count;
    map.close();
    return all;
  }

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
    expect(await remembered()).toBe(2);
    expect([await forget({}), left(), await remembered()]).toEqual([3, [], 0]);
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

import { PLACES, STAGE_ADDRESSES } from "@turnout/conformance";
import type { Packet } from "@turnout/conformance";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { afterEach, beforeAll, beforeEach, expect, it, describe } from "vitest";
import { Takeover } from "./test-support/takeover.ts";
import { createFakeHost } from "./testing/index.ts";
import type { EbpfFakeHost } from "./testing/index.ts";

const EXTERNAL = "198.51.100.5";
const SPEC = { externalIPs: [EXTERNAL] };

describe("a process of the host that listens at a cluster IP which is on a device here", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  let host: EbpfFakeHost;
  let proxy: Takeover;
  beforeEach(() => (host = createFakeHost()));
  afterEach(() => proxy.end());

  /** What happens to a packet of a pod and of the host; sockets are asked before. */
  const fates = (destination: string, port = 80): readonly string[] =>
    [
      { link: PLACES.find(({ name }) => name === "pod-1-3")?.link ?? "none", source: "10.1.1.3" },
      { link: "", source: "172.18.0.1" },
    ].map(({ link, source }) => {
      const packet: Packet = { family: "IPv4", protocol: "TCP", link, source, destination, port };
      return host.trace(packet, () => 0.25).is;
    });

  async function start(link: string): Promise<void> {
    const other = { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1", "fd00:96::1"], ports: [{ name: "main", port: 9153 }] };
    proxy = new Takeover(host, [
      { name: "dns", number: 1, local: 1, spec: SPEC },
      { name: "metrics", number: 1, local: 1, spec: other },
    ]);
    await proxy.done();
    host.setAddresses([...STAGE_ADDRESSES, ...["10.96.0.1", EXTERNAL].map((ip) => ({ ip, prefixLength: 32, link }))]);
    await proxy.wait(10_000);
    for (const ip of ["10.96.0.1", EXTERNAL]) host.listeners.add(`${ip}:80/TCP`);
  }

  it("gets what comes there, and nothing of other ports and kinds of addresses, as long as it listens", async () => {
    await start("nodelocaldns");
    expect([fates("10.96.0.1"), fates("10.96.0.1", 9153), fates(EXTERNAL)]).toEqual([
      ["pass", "pass"],
      ["forward", "forward"],
      ["forward", "forward"],
    ]);
    host.listeners.clear();
    expect(fates("10.96.0.1")).toEqual(["forward", "forward"]);
  });

  it.each(["kube-ipvs0", "turnout0"])("gets nothing where a proxy has put the address on %s", async (link) => {
    await start(link);
    expect(fates("10.96.0.1")).toEqual(["forward", "forward"]);
  });

  it("gets it although the Service has no endpoint", async () => {
    await start("nodelocaldns");
    proxy.want([{ name: "dns", number: 1, spec: SPEC }]);
    await proxy.wait(10_000);
    expect([fates("10.96.0.1"), fates(EXTERNAL)]).toEqual([
      ["pass", "pass"],
      ["reject", "reject"],
    ]);
  });
});

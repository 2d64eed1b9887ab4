import type { Plain } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { winkernelModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";
import type { FakeHostOptions } from "./testing/index.ts";
import type { WinkernelWorld } from "./world.ts";
import { noWindows } from "./test-support/no-windows.ts";

const never = new AbortController().signal;

async function probed(
  host: FakeHostOptions,
  options: Readonly<Record<string, Plain>> = {},
  change: (world: WinkernelWorld) => WinkernelWorld = (world) => world,
): ReturnType<typeof winkernelModule.probe> {
  return await winkernelModule.probe(winkernelModule.parseOptions(options), change(createFakeHost(host).world), never);
}

describe("what a host can", () => {
  it.each<[number, number, Readonly<Record<string, string>>]>([
    [9, 2, { clientAddress: "9.2", IPv6: "9.2", sessionAffinity: "9.2" }],
    [9, 5, { IPv6: "9.5", sessionAffinity: "9.5" }],
    [10, 0, { clientAddress: "10.0", IPv6: "10.0", sessionAffinity: "10.0" }],
    [10, 2, { IPv6: "10.2", sessionAffinity: "10.2" }],
    [11, 10, { sessionAffinity: "11.10" }],
    [12, 0, {}],
    [16, 0, {}],
  ])("HNS %i.%i", async (major, minor, lacks) => {
    const { capabilities = {}, problems, versions } = await probed({ version: { major, minor } });
    expect(problems).toEqual([]);
    expect(versions).toEqual({ hns: `${major}.${minor}` });
    expect(Object.keys(capabilities).toSorted()).toEqual(Object.keys(lacks).toSorted());
    for (const [name, version] of Object.entries(lacks))
      expect(capabilities[name as keyof typeof capabilities]).toContain(`HNS ${version} has no`);
  });

  it("needs the V2 schema", async () => {
    const { problems } = await probed({ version: { major: 9, minor: 1 } });
    expect(problems.map(String)).toEqual([expect.stringContaining("this HNS has no V2 schema: version 9.1: needs Windows Server 2019")]);
  });

  it("on an overlay has IPv4 alone, and needs a source address", async () => {
    const { capabilities, problems } = await probed({ network: "overlay" });
    expect(capabilities).toEqual({ IPv6: "Windows has overlays for IPv4 alone" });
    expect(problems.map(String)).toEqual([expect.stringContaining("an overlay needs a source address: network cbr0: pass sourceVip")]);
    expect((await probed({ network: "overlay" }, { sourceVip: "10.1.1.200" })).problems).toEqual([]);
  });

  it("without direct server return tells that endpoints see the node", async () => {
    const { capabilities } = await probed({}, { enableDSR: false });
    expect(Object.entries(capabilities ?? {})).toEqual([["clientAddress", expect.stringContaining("enableDSR is off")]]);
  });
});

describe("problems name what to do", () => {
  it("no such network: those that are there", async () => {
    const { problems } = await probed({}, { networkName: "flannel" });
    expect(problems.map(String)).toEqual([
      expect.stringMatching(/HNS has no such network: network "flannel": .*there are cbr0, nat; name it/),
    ]);
  });

  it("a network of another kind", async () => {
    const { problems } = await probed({}, { networkName: "nat" });
    expect(problems.map(String)).toEqual([
      expect.stringContaining("a network of type NAT has no load balancers for Services: network nat"),
    ]);
  });

  it("HNS is down, or isn't there", async () => {
    const host = createFakeHost();
    host.hns.beDown(1);
    const { problems } = await winkernelModule.probe(winkernelModule.parseOptions({}), host.world, never);
    expect(problems.map(String)).toEqual([
      expect.stringMatching(/^ProxyError: \[timed_out\] HNS can't be asked \(0x800706ba.*Get-Service hns/),
    ]);
    const absent = await probed({}, {}, (world) => ({ ...world, hns: noWindows() }));
    expect(absent.problems.map(String)).toEqual([expect.stringContaining("[tool_missing] no Host Network Service can be asked")]);
  });
});

it("facts tell the host's addresses, and where pods of other hosts are", async () => {
  const { facts } = await probed({ network: "overlay" }, { sourceVip: "10.1.1.200" });
  expect(facts).toMatchObject({
    network: "overlay",
    remoteSubnets: [{ prefix: "10.1.2.0/24", provider: "172.18.0.2" }],
    addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
    hasDSR: true,
  });
  expect(facts.macs["172.18.0.1"]).toBe("00-15-5d-01-02-03");
});

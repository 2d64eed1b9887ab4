import { describe, expect, it } from "vitest";
import { readEndpoint, readLoadBalancer, readNetwork, readVersion } from "./replies.ts";
import { hasFeature } from "./version.ts";
import type { HnsFeature } from "./version.ts";

const ID = "0B9F2A1C-6D53-4A0E-9A57-2F5F0C1D7E11";
const id = ID.toLowerCase();

describe("what HNS tells is read", () => {
  it("of an endpoint, in hcsshim's case and in Microsoft's", () => {
    const expected = {
      id,
      name: "pod",
      networkId: id,
      addresses: ["10.1.2.1"],
      mac: "02-11-0a-01-02-01",
      isRemote: true,
      provider: "172.18.0.2",
    };
    const policies = [
      { Type: "ACL", Settings: {} },
      { Type: "ProviderAddress", Settings: { ProviderAddress: "172.18.0.2" } },
    ];
    const rest = {
      Name: "pod",
      HostComputeNetwork: ID,
      Policies: policies,
      MacAddress: "02-11-0A-01-02-01",
      Flags: 1,
      Dns: {},
      Health: { Extra: {} },
    };
    expect(readEndpoint(JSON.stringify({ ID, IpConfigurations: [{ IpAddress: "10.1.2.1", PrefixLength: 24 }], ...rest }))).toEqual(
      expected,
    );
    expect(readEndpoint(JSON.stringify({ Id: `{${ID}}`, IPConfigurations: [{ IPAddress: "10.1.2.1" }], ...rest }))).toEqual(expected);
  });

  it("of one that has next to nothing", () => {
    expect(readEndpoint(JSON.stringify({ ID, IpConfigurations: null }))).toEqual({
      id,
      name: "",
      networkId: "",
      addresses: [],
      mac: "",
      isRemote: false,
      provider: "",
    });
  });

  it("of a load balancer; what Go leaves out is zero", () => {
    const json = JSON.stringify({
      ID,
      HostComputeEndpoints: [ID],
      FrontendVIPs: ["FD00:96:0::1"],
      PortMappings: [{ Protocol: 6, ExternalPort: 80 }],
    });
    expect(readLoadBalancer(json)).toEqual({
      id,
      endpointIds: [id],
      sourceVip: "",
      vips: ["fd00:96::1"],
      ports: [{ protocol: 6, internalPort: 0, externalPort: 80, distributionType: 0, flags: 0 }],
      flags: 0,
    });
  });

  it("of a network with remote subnets, and of a NAT network, which has no type", () => {
    const route = { DestinationPrefix: "10.1.2.0/24", IsolationId: 4096, ProviderAddress: "172.18.0.2", DistributedRouterMacAddress: "" };
    const json = JSON.stringify({ ID, Name: "vxlan0", Type: "Overlay", Policies: [{ Type: "RemoteSubnetRoute", Settings: route }] });
    expect(readNetwork(json)).toEqual({
      id,
      name: "vxlan0",
      type: "overlay",
      remoteSubnets: [{ prefix: "10.1.2.0/24", provider: "172.18.0.2" }],
    });
    expect(readNetwork(JSON.stringify({ ID, Name: "nat" }))).toMatchObject({ type: "", remoteSubnets: [] });
  });

  it.each<[string, string]>([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["no id", "{}"],
    ["an id that is no GUID", '{"ID":"cbr0"}'],
    ["endpoints that are no list", JSON.stringify({ ID, HostComputeEndpoints: ID })],
    ["flags that are a text", JSON.stringify({ ID, Flags: "1" })],
  ])("never from %s", (_, json) => {
    expect(() => readLoadBalancer(json)).toThrow("[invalid_object] HNS: ");
  });

  it("of its version, or its error", () => {
    expect(readVersion('{"Success":true,"Output":{"Major":15,"Minor":5}}')).toEqual({ major: 15, minor: 5 });
    expect(() => readVersion('{"Success":false,"Error":"Access is denied."}')).toThrow(
      "[tool_failed] HNS doesn't tell its version: Access is denied.",
    );
    expect(() => readVersion('{"Success":true}')).toThrow("[invalid_object]");
  });
});

describe("features by version", () => {
  it.each<[HnsFeature, readonly string[], readonly string[]]>([
    ["v2", ["9.2", "10.0", "16.0"], ["9.1", "8.9"]],
    ["dsr", ["9.3", "9.9", "10.2", "13.0"], ["9.2", "10.0", "10.1"]],
    ["dualStack", ["11.10", "12.0"], ["11.9", "10.20"]],
    ["sessionAffinity", ["12.0"], ["11.99"]],
    ["modifyLoadBalancer", ["15.5", "15.9", "16.0"], ["15.4", "14.9"]],
  ])("%s", (feature, having, lacking) => {
    const has = (version: string): boolean => {
      const [major = 0, minor = 0] = version.split(".").map(Number);
      return hasFeature({ major, minor }, feature);
    };
    expect([having.filter((one) => !has(one)), lacking.filter(has)]).toEqual([[], []]);
  });
});

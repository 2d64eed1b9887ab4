import { describe, expect, it } from "vitest";
import { ENDPOINT_SETTINGS, LOAD_BALANCER_SETTINGS } from "./documents.ts";

const ID = "00000000-0000-4000-8000-000000000001";
const VERSION = { Major: 2, Minor: 0 };
const PORT = { Protocol: 6, InternalPort: 8080, ExternalPort: 80 };
const BALANCER = { HostComputeEndpoints: [ID], FrontendVIPs: ["10.96.0.1"], PortMappings: [PORT], SchemaVersion: VERSION };
const REMOTE = {
  HostComputeNetwork: ID,
  IpConfigurations: [{ IpAddress: "10.1.2.1" }],
  MacAddress: "02-11-0a-01-02-01",
  Flags: 1,
  SchemaVersion: VERSION,
};
const POLICY = { Type: "ProviderAddress", Settings: { ProviderAddress: "172.18.0.2" } };

describe("a load balancer is sent", () => {
  it.each<[string, object]>([
    ["as it is", BALANCER],
    ["with all flags", { ...BALANCER, Flags: 1, PortMappings: [{ ...PORT, DistributionType: 2, Flags: 16 + 4 + 8 }] }],
    ["for a node port", { ...BALANCER, FrontendVIPs: undefined, PortMappings: [{ ...PORT, Flags: 18 }] }],
    ["for IPv6", { ...BALANCER, FrontendVIPs: ["fd00:96::1"], Flags: 2 }],
    ["with a source", { ...BALANCER, SourceVIP: "10.1.1.200" }],
  ])("%s", (_, document) => {
    expect(LOAD_BALANCER_SETTINGS(JSON.parse(JSON.stringify(document)), "it")).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it.each<[string, object]>([
    ["without endpoints", { ...BALANCER, HostComputeEndpoints: [] }],
    ["with an endpoint that is no GUID", { ...BALANCER, HostComputeEndpoints: ["10.1.1.1"] }],
    ["with two addresses", { ...BALANCER, FrontendVIPs: ["10.96.0.1", "10.96.0.2"] }],
    ["with no address in a list", { ...BALANCER, FrontendVIPs: [] }],
    ["with a name as address", { ...BALANCER, FrontendVIPs: ["cart"] }],
    ["with two ports", { ...BALANCER, PortMappings: [PORT, PORT] }],
    ["without a port", { ...BALANCER, PortMappings: [] }],
    ["with port 0", { ...BALANCER, PortMappings: [{ ...PORT, InternalPort: 0 }] }],
    ["with port 65536", { ...BALANCER, PortMappings: [{ ...PORT, ExternalPort: 65_536 }] }],
    ["with another protocol", { ...BALANCER, PortMappings: [{ ...PORT, Protocol: 1 }] }],
    ["with a distribution by protocol", { ...BALANCER, PortMappings: [{ ...PORT, DistributionType: 1 }] }],
    ["with an unknown flag of the port", { ...BALANCER, PortMappings: [{ ...PORT, Flags: 32 }] }],
    ["with UseMux alone", { ...BALANCER, PortMappings: [{ ...PORT, Flags: 16 + 4 }] }],
    ["with an unknown flag", { ...BALANCER, Flags: 4 }],
    ["with an IPv6 address and no flag", { ...BALANCER, FrontendVIPs: ["fd00:96::1"] }],
    ["with an IPv4 address and the flag", { ...BALANCER, Flags: 2 }],
    ["for a node port with an address", { ...BALANCER, PortMappings: [{ ...PORT, Flags: 18 }] }],
    ["without an address for another port", { ...BALANCER, FrontendVIPs: undefined }],
    ["with another version", { ...BALANCER, SchemaVersion: { Major: 2, Minor: 2 } }],
    ["with a field more", { ...BALANCER, Name: "cart" }],
    ["with a field more in the port", { ...BALANCER, PortMappings: [{ ...PORT, Name: "http" }] }],
    ["with a field in another case", { ...BALANCER, sourceVIP: "10.1.1.200" }],
  ])("never %s", (_, document) => {
    expect(() => LOAD_BALANCER_SETTINGS(document, "it")).toThrow(/^\[invalid_object\] HNS: it/);
  });
});

describe("an endpoint is sent", () => {
  it.each<[string, object]>([
    ["as it is", REMOTE],
    ["with its host", { ...REMOTE, Policies: [POLICY] }],
    ["of this host", { ...REMOTE, Flags: undefined, Name: "turnout-source-vip" }],
  ])("%s", (_, document) => {
    expect(ENDPOINT_SETTINGS(JSON.parse(JSON.stringify(document)), "it")).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it.each<[string, object]>([
    ["without an address", { ...REMOTE, IpConfigurations: [] }],
    ["with two addresses", { ...REMOTE, IpConfigurations: [...REMOTE.IpConfigurations, ...REMOTE.IpConfigurations] }],
    ["with a prefix length", { ...REMOTE, IpConfigurations: [{ IpAddress: "10.1.2.1", PrefixLength: 24 }] }],
    ["with colons in its MAC address", { ...REMOTE, MacAddress: "02:11:0a:01:02:01" }],
    ["with another flag", { ...REMOTE, Flags: 3 }],
    ["with another policy", { ...REMOTE, Policies: [{ ...POLICY, Type: "ACL" }] }],
    ["with two policies", { ...REMOTE, Policies: [POLICY, POLICY] }],
    ["of this host with another host", { ...REMOTE, Flags: undefined, Policies: [POLICY] }],
    ["with a namespace", { ...REMOTE, HostComputeNamespace: ID }],
  ])("never %s", (_, document) => {
    expect(() => ENDPOINT_SETTINGS(document, "it")).toThrow(/^\[invalid_object\] HNS: it/);
  });
});

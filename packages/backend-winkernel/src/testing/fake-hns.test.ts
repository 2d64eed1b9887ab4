import { beforeEach, describe, expect, it } from "vitest";
import { SCHEMA_VERSION } from "../hns/documents.ts";
import { isHnsError } from "../hns/error.ts";
import { readEndpoint, readLoadBalancer } from "../hns/replies.ts";
import { createFakeHost } from "./fake-host.ts";
import type { WinkernelFakeHost } from "./fake-host.ts";

const REMOTE = { IpConfigurations: [{ IpAddress: "10.1.2.1" }], MacAddress: "02-11-0a-01-02-01", SchemaVersion: SCHEMA_VERSION };
const PORTS = [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }];

let host: WinkernelFakeHost;
let endpoint: string;
beforeEach(async () => {
  host = createFakeHost();
  endpoint = await addEndpoint();
});

const addEndpoint = async (changes: object = { Flags: 1 }): Promise<string> => {
  const settings = { ...REMOTE, HostComputeNetwork: host.networkId, ...changes };
  return readEndpoint(await host.hns.createEndpoint(host.networkId, JSON.stringify(settings))).id;
};
const balancer = (endpoints: readonly string[], vip: string = "10.96.0.1"): string =>
  JSON.stringify({ HostComputeEndpoints: endpoints, FrontendVIPs: [vip], PortMappings: PORTS, SchemaVersion: SCHEMA_VERSION });
const addBalancer = async (endpoints: readonly string[], vip?: string): Promise<string> =>
  readLoadBalancer(await host.hns.createLoadBalancer(balancer(endpoints, vip))).id;

/** The HRESULT that a call fails with. */
async function hresult(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isHnsError(error) ? `0x${error.hresult.toString(16)}` : "none";
}

describe("HNS in memory refuses what the real one is known to refuse", () => {
  it("a second load balancer at an address and port, in other words after it started again", async () => {
    await addBalancer([endpoint]);
    expect(await hresult(addBalancer([endpoint]))).toBe("0x803b0013");
    host.hns.restart("kept");
    expect(await hresult(addBalancer([endpoint]))).toBe("0x800700b7");
    expect(await hresult(addBalancer([endpoint], "10.96.0.2"))).toBe("none");
  });

  it("a load balancer without endpoints, or with one that isn't there", async () => {
    expect(await hresult(addBalancer([]))).toBe("0x803b001c");
    expect(await hresult(addBalancer(["00000000-0000-4000-8000-00000000dead"]))).toBe("0x803b0002");
  });

  it("an endpoint of this host outside of its subnets, and one in no network", async () => {
    expect(await hresult(addEndpoint({}))).toBe("0x803b001e");
    const settings = JSON.stringify({ ...REMOTE, HostComputeNetwork: host.networkId, Flags: 1 });
    expect(await hresult(host.hns.createEndpoint("00000000-0000-4000-8000-00000000dead", settings))).toBe("0x803b0001");
  });

  it("to delete an endpoint that is named, unless it is of the other kind", async () => {
    const user = await addBalancer([endpoint]);
    expect(await hresult(host.hns.remove("endpoint", endpoint))).toBe("0x803b002c");
    await host.hns.remove("loadBalancer", user);
    expect(await hresult(host.hns.remove("endpoint", endpoint))).toBe("none");
    host = createFakeHost({ deleteInUse: "allowed" });
    endpoint = await addEndpoint();
    await addBalancer([endpoint]);
    expect(await hresult(host.hns.remove("endpoint", endpoint))).toBe("none");
  });

  it("what isn't there", async () => {
    expect(await hresult(host.hns.remove("endpoint", "nothing"))).toBe("0x803b0002");
    expect(await hresult(host.hns.remove("loadBalancer", "nothing"))).toBe("0x80070490");
    expect(await hresult(host.hns.modifyLoadBalancer("nothing", balancer([endpoint])))).toBe("0x80070490");
  });

  it("anything while it is down", async () => {
    host.hns.beDown(1);
    expect(await hresult(host.hns.list("network"))).toBe("0x800706ba");
    expect(await hresult(host.hns.list("network"))).toBe("none");
  });
});

describe("to change a load balancer", () => {
  it.each<[number, number, string, number]>([
    [13, 2, "0x80004001", 8080],
    [15, 4, "none", 8080],
    [15, 5, "none", 9090],
  ])("in HNS %i.%i", async (major, minor, expected, port) => {
    host = createFakeHost({ version: { major, minor } });
    endpoint = await addEndpoint();
    const id = await addBalancer([endpoint]);
    expect(await hresult(host.hns.modifyLoadBalancer(id, balancer([endpoint]).replace("8080", "9090")))).toBe(expected);
    expect(host.hns.balancers.get(id)?.settings.PortMappings[0]?.InternalPort).toBe(port);
  });
});

it.each(["before", "during"] as const)("a fault %s a call leaves nothing of it", async (when) => {
  host.setFault({ when, afterChanges: 0 });
  expect([await hresult(addBalancer([endpoint])), host.own().length]).toEqual(["0x800706ba", 1]);
});

it("a fault after a call leaves all of it", async () => {
  host.setFault({ when: "after", afterChanges: 0 });
  expect([await hresult(addBalancer([endpoint])), host.own().length]).toEqual(["0x800706ba", 2]);
});

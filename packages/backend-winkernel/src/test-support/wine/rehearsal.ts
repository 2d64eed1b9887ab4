import { writeFileSync } from "node:fs";
import koffiPackage from "koffi";
import { HnsClient } from "../../hns/client.ts";
import { SCHEMA_VERSION } from "../../hns/documents.ts";
import type { EndpointSettings, LoadBalancerSettings } from "../../hns/documents.ts";
import { HnsError } from "../../hns/error.ts";
import { declareHnsCalls } from "../../native/libraries.ts";
import { WindowsHns } from "../../native/windows-hns.ts";
import { koffiWith, MISTAKES } from "./mistakes.ts";

// Runs on Windows' Node: plays every call of the binding on the stub, and writes what came of it to a file. Its arguments: the file, the name of a mistake.

const NONE = "01234567-89ab-cdef-0123-456789abcdef";
const ROUNDS = 200;
const signal = AbortSignal.timeout(60_000);
const systemRoot = process.env["SystemRoot"] ?? "";
const [file = "", mistakeName = ""] = process.argv.slice(2);
const mistake = MISTAKES[mistakeName] ?? {};
const calls = declareHnsCalls(koffiWith(mistake), systemRoot);
const hns = new WindowsHns(() => mistake.calls?.(calls) ?? calls);
const client = new HnsClient(hns);
const stub = koffiPackage.load(`${systemRoot}\\System32\\computenetwork.dll`);
const fail = stub.func("void StubFail(str16 function, int32_t result)") as (name: string, result: number) => void;
const delay = stub.func("void StubDelay(str16 function, uint32_t ms)") as (name: string, ms: number) => void;
const counted = (name: string): number => stub.func(`int ${name}()`)() as number;
const report: Record<string, unknown> = {};

/** Note what a step gives, or what it fails with. */
async function step<T>(name: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await work();
    report[name] = result ?? "done";
    return result;
  } catch (error) {
    report[name] = error instanceof HnsError ? `${error.failure}: ${error.message}` : String(error);
    return undefined;
  }
}

function remote(networkId: string, ip: string): EndpointSettings {
  const addresses = [{ IpAddress: ip }];
  return {
    HostComputeNetwork: networkId,
    IpConfigurations: addresses,
    MacAddress: "02-11-0a-01-02-01",
    Flags: 1,
    SchemaVersion: SCHEMA_VERSION,
  };
}

function balancer(endpointIds: readonly string[], vip: string): LoadBalancerSettings {
  const ports = [{ Protocol: 6 as const, InternalPort: 8080, ExternalPort: 80 }];
  return { HostComputeEndpoints: endpointIds, FrontendVIPs: [vip], PortMappings: ports, SchemaVersion: SCHEMA_VERSION };
}

async function execute(): Promise<void> {
  await step("version", () => client.version(signal));
  const [network] = (await step("networks", () => client.networks(signal))) ?? [];
  const networkId = network?.id ?? NONE;
  await step("others go on while HNS takes its time", async () => {
    let turns = 0;
    const others = setInterval(() => turns++, 10);
    delay("HcnEnumerateNetworks", 500);
    await client.networks(signal);
    clearInterval(others);
    return turns > 2;
  });
  await step("endpoints of the CNI", () => client.endpoints(signal));
  const endpoint = await step("an endpoint is made", () => client.createEndpoint(remote(networkId, "10.1.2.1"), signal));
  const endpointId = endpoint?.id ?? NONE;
  const made = await step("a load balancer is made", () => client.createLoadBalancer(balancer([endpointId], "10.96.0.1"), signal));
  const id = made?.id ?? NONE;
  fail("HcnCreateLoadBalancer", 0x803b0013 | 0);
  await step("another one at its address", () => client.createLoadBalancer(balancer([endpointId], "10.96.0.1"), signal));
  await step("an endpoint on a network that isn't there", () => client.createEndpoint(remote(NONE, "10.1.2.2"), signal));
  await step("it is changed", () => client.modifyLoadBalancer(id, balancer([endpointId], "10.96.0.3"), signal));
  await step("load balancers", () => client.loadBalancers(signal));
  fail("HcnDeleteEndpoint", 0x803b002c | 0);
  await step("an endpoint that is in use", () => client.removeEndpoint(endpointId, signal));
  fail("HcnQueryLoadBalancerProperties", 0x800706ba | 0);
  await step("a failure while it is looked at", () => client.loadBalancers(signal));
  fail("HcnOpenLoadBalancer", 0x80070490 | 0);
  await step("one goes while it is looked at", () => client.loadBalancers(signal));
  await step("it is deleted", () => client.removeLoadBalancer(id, signal));
  await step("it is deleted again", () => client.removeLoadBalancer(id, signal));
  await step("many are made and deleted", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const one = await client.createLoadBalancer(balancer([endpointId], `10.96.1.${round}`), signal);
      await client.removeLoadBalancer(one.id, signal);
    }
  });
  await step("the endpoint is deleted", () => client.removeEndpoint(endpointId, signal));
  await step("is anything left", async () => [await client.loadBalancers(signal), (await client.endpoints(signal)).length]);
  report["left in memory"] = { handles: counted("StubOpenHandles"), texts: counted("StubTexts"), badHandles: counted("StubBadHandles") };
}

await execute();
writeFileSync(file, JSON.stringify(report, undefined, 2));

import type { Plain } from "@turnout/core/backend";
import { beforeEach, expect, it } from "vitest";
import { ipvsModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IpvsFakeHost } from "./testing/index.ts";
import { losesReusedPorts } from "./world.ts";

const never = new AbortController().signal;

let host: IpvsFakeHost;
beforeEach(() => {
  host = createFakeHost();
});

async function problems(options: Readonly<Record<string, Plain>>): Promise<readonly string[]> {
  return (await ipvsModule.probe(ipvsModule.parseOptions(options), host.world, never)).problems.map(String);
}

it("a scheduler that the kernel lacks is named with the option that asks for it", async () => {
  expect(await problems({ scheduler: "nope" })).toEqual([
    expect.stringMatching(/the kernel has no scheduler nope: ipvs option scheduler\b/),
  ]);
  expect(await problems({ schedulers: { "shop/cart": "nope" } })).toEqual([
    expect.stringMatching(/the kernel has no scheduler nope: ipvs option schedulers\b/),
  ]);
});

it("a trial virtual server that a killed process left says nothing of the kernel, and goes", async () => {
  const trial = { family: "IPv4", protocol: "TCP", address: "198.51.100.0", port: 20_000 } as const;
  const settings = { scheduler: "rr", flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 };
  host.ipvs.run({ verb: "add-service", service: { ...trial, ...settings } });
  expect(await problems({ scheduler: "nope" })).toHaveLength(1);
  expect(host.ipvs.virtualServers().map(({ address }) => address)).not.toContain(trial.address);
});

it.each([
  ["3.10.0-1160.el7.x86_64", false],
  ["4.18.0-553.el8_10.x86_64", true],
  ["5.4.0-150-generic", true],
  ["5.9.0", false],
  ["6.1.0-18-amd64", false],
])("kernel %s loses reused ports: %s", (release, expected) => {
  expect(losesReusedPorts(release)).toBe(expected);
});

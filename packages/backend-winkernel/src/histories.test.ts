import { checkHistories } from "@turnout/conformance";
import type { Plain } from "@turnout/core";
import { expect, it } from "vitest";
import { winkernelModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";
import type { FakeHostOptions } from "./testing/index.ts";

const STEPS = 600;
const TIMEOUT_MS = 300_000;

it.each<[string, FakeHostOptions, Readonly<Record<string, Plain>>]>([
  ["HNS 9.5, Windows Server 2019", { version: { major: 9, minor: 5 } }, {}],
  ["HNS 13.2, without a way to change load balancers", { version: { major: 13, minor: 2 } }, {}],
  ["HNS 15.4, which says that it changes load balancers", { version: { major: 15, minor: 4 } }, {}],
  ["an HNS that deletes endpoints in use", { version: { major: 13, minor: 2 }, deleteInUse: "allowed" }, {}],
  ["health checks at load-balancer IPs", {}, { forwardHealthCheckVip: true }],
])(
  "R-58 on %s random histories end where one sync ends, and nothing leaks",
  async (_, host, backendOptions) => {
    const report = await checkHistories(winkernelModule, () => createFakeHost(host), { steps: STEPS, seed: 7, backendOptions });
    expect(report.findings.map(({ what, got, details }) => [what, got, ...details].join("\n"))).toEqual([]);
    expect(report.steps).toBe(STEPS);
  },
  TIMEOUT_MS,
);

it(
  "R-58 on an overlay random histories end where one sync ends, and nothing leaks",
  async () => {
    const host: FakeHostOptions = { network: "overlay" };
    const backendOptions = { sourceVip: "10.1.1.200" };
    const report = await checkHistories(winkernelModule, () => createFakeHost(host), { steps: STEPS, seed: 7, backendOptions });
    expect(report.findings.map(({ what, got, details }) => [what, got, ...details].join("\n"))).toEqual([]);
  },
  TIMEOUT_MS,
);

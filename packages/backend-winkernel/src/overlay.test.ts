import { checkBackend, SCENARIOS } from "@turnout/conformance";
import { expect, it } from "vitest";
import { winkernelModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

it("on an overlay does in every scenario what it should, in its one family", async () => {
  const backendOptions = { sourceVip: "10.1.1.200" };
  const { findings, cells } = await checkBackend(winkernelModule, () => createFakeHost({ network: "overlay" }), SCENARIOS, {
    backendOptions,
  });
  expect(findings.map(({ kind, scenario, step, what, got, details }) => [kind, scenario, step, what, got, ...details].join("\n"))).toEqual(
    [],
  );
  expect(cells.filter(({ family, skipped }) => family === "IPv6" && skipped === undefined)).toEqual([]);
}, 600_000);

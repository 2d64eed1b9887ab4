import type { Exec } from "@turnout/core";
import { rememberLookup } from "@turnout/host/iptables";
import { expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

const { signal } = new AbortController();

it("what the probe found out about iptables is not looked up again by the dataplane", async () => {
  const host = createFakeHost();
  const programs: string[] = [];
  const run: Exec["run"] = (file, args, options) => {
    programs.push(file.includes("-save") ? "save" : [file, ...args].join(" "));
    return host.world.exec.run(file, args, options);
  };
  const exec = { ...host.world.exec, run };
  const world = { ...host.world, exec, rememberedLookup: rememberLookup(exec) };
  const options = iptablesModule.parseOptions({});
  await iptablesModule.probe(options, world, signal);
  expect(programs).toContain("iptables -V");
  programs.length = 0;
  const dataplane = await iptablesModule.open(options, world, signal);
  await dataplane.family("IPv4").observe(signal);
  await dataplane.family("IPv6").observe(signal);
  expect(new Set(programs)).toEqual(new Set(["save"]));
});

import type { Exec } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { IptablesLookup, lookupIn, rememberLookup } from "./lookup.ts";
import { IptablesTool } from "./tool.ts";
import { findIptables } from "./tools.ts";

const { signal } = new AbortController();
const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** A host with both variants and no rules, which counts what is started. */
function countingHost(): { readonly exec: Exec; readonly calls: string[] } {
  const calls: string[] = [];
  const run: Exec["run"] = (file, args) => {
    calls.push([file, ...args].join(" "));
    const variant = file.includes("legacy") ? "legacy" : "nf_tables";
    return Promise.resolve({ code: 0, stdout: args[0] === "-V" ? `iptables v1.8.9 (${variant})\n` : "", stderr: "" });
  };
  const open = (): never => {
    throw new Error("nothing is kept");
  };
  return { exec: { run, open }, calls };
}

describe("which iptables this host uses", () => {
  it("is looked up once for both families, and each program is started once", async () => {
    const { exec, calls } = countingHost();
    const lookup = new IptablesLookup(exec, "auto");
    const world = { exec, log: QUIET, clock: { nowMs: () => 0, sleep: () => Promise.resolve() } };
    const tools = (["IPv4", "IPv6"] as const).map((family) => new IptablesTool(world, family, lookup));
    const choices = await Promise.all(tools.map((tool) => tool.choice(signal)));
    expect(choices.map(({ variant }) => variant)).toEqual(["nft", "nft"]);
    expect(tools.map(({ variant }) => variant)).toEqual(["nft", "nft"]);
    expect(calls).toHaveLength(11);
    expect(new Set(calls).size).toBe(11);
  });

  it("is remembered for what is opened after a probe, and looked up anew for another wish", async () => {
    const { exec, calls } = countingHost();
    const world = { exec, rememberedLookup: rememberLookup(exec) };
    await lookupIn(world, "auto").choice(signal);
    const looked = calls.length;
    await lookupIn(world, "auto").choice(signal);
    expect(calls).toHaveLength(looked);
    expect((await lookupIn(world, "legacy").choice(signal)).variant).toBe("legacy");
    await lookupIn({ exec }, "legacy").choice(signal);
    expect(calls.length).toBeGreaterThan(2 * looked);
  });

  it("does not start again what was found just before", async () => {
    const { exec, calls } = countingHost();
    await lookupIn({ exec }, "auto").choice(signal, await findIptables(exec, signal));
    expect(new Set(calls).size).toBe(calls.length);
  });
});

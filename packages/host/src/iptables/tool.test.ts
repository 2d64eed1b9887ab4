import { setImmediate } from "node:timers/promises";
import { TestClock } from "@turnout/core/testing";
import { ProxyError } from "@turnout/core";
import type { Exec, Log } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createFakeExec } from "../testing/fake-exec.ts";
import { IptablesTool } from "./tool.ts";
import type { IptablesProgram } from "./tools.ts";

const quiet: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const NFT: IptablesProgram = { variant: "nft", version: "1.8.9", suffix: "-nft" };
const { signal } = new AbortController();

/** A tool whose next call prints this. */
function toolThatPrints(args: readonly string[], stdout: string): IptablesTool {
  const exec = createFakeExec([{ run: ["iptables-nft-save", ...args], result: { stdout } }]);
  return new IptablesTool({ exec, clock: new TestClock(0), log: quiet }, "IPv4", NFT);
}

describe("IptablesTool", () => {
  // As 1.8.9 says it, with exit code 0, when somebody has "ct state new accept" of nft's in the table.
  const unlisted = "# Table `nat' is incompatible, use 'nft' tool.\n";

  it("doesn't take a table that can't be listed for an empty one", async () => {
    const wanted = { code: "host_unsupported", object: "Table `nat' is incompatible, use 'nft' tool." };
    await expect(toolThatPrints(["-t", "nat"], unlisted).save("nat", signal)).rejects.toMatchObject(wanted);
    const others = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
    await expect(toolThatPrints([], others + unlisted).saveExisting(signal)).rejects.toMatchObject(wanted);
  });

  it("lists the tables of the nft variant in one run, whatever is in those of others", async () => {
    const text =
      "# Generated\n*mangle\n:A - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\nCOMMIT\n# Table `security' is incompatible, use 'nft' tool.\n";
    const { filter, nat, mangle } = await toolThatPrints([], text).saveAll(signal);
    expect([filter, nat.includes(":B "), mangle.includes(":B "), mangle.includes(":A ")]).toEqual(["", true, false, true]);
  });

  it("reads a table in which only other base chains can't be listed", async () => {
    const text = "*nat\nCOMMIT\n# Table `nat' contains incompatible base-chains, use 'nft' tool to list them.\n";
    expect(await toolThatPrints(["-t", "nat"], text).save("nat", signal)).toBe(text);
  });

  it.each(["nft", "legacy"] as const)("lists chains of all tables in one run, %s", async (variant) => {
    const suffix = `-${variant}`;
    const stdout = "-N A\n-A A -j ACCEPT\n-P OUTPUT ACCEPT\n-N A\n";
    const input = "*nat\n-S A\n-S OUTPUT\nCOMMIT\n*mangle\n-S A\nCOMMIT\n";
    const exec = createFakeExec([{ run: [`iptables${suffix}-restore`, "-w", "2", "--noflush"], input, result: { stdout } }]);
    const tool = new IptablesTool({ exec, clock: new TestClock(0), log: quiet }, "IPv4", { ...NFT, variant, suffix });
    expect(await tool.saveChains({ nat: ["A", "OUTPUT"], filter: [], mangle: ["A"] }, signal)).toEqual({
      nat: ":A - [0:0]\n-A A -j ACCEPT\n:OUTPUT ACCEPT [0:0]\n",
      filter: "",
      mangle: ":A - [0:0]\n",
    });
  });

  it.each([
    ["nft", ["iptables-nft", "-t", "nat", "-S", "A"], "-N A\n"],
    ["legacy", ["iptables-legacy-save", "-t", "nat"], ":A - [0:0]\n"],
  ] as const)("lists otherwise where one of the chains is missing, %s", async (variant, run, stdout) => {
    const input = "*nat\n-S A\n-S B\nCOMMIT\n";
    const missing = ["iptables-nft", "-t", "nat", "-S", "B"];
    const stderr = "iptables v1.8.9 (nf_tables): chain `B' in table `nat' is incompatible, use 'nft' tool.\n";
    const exec = createFakeExec([
      { run: [`iptables-${variant}-restore`, "-w", "2", "--noflush"], input, result: { code: 1, stdout: "-N A\n", stderr } },
      { run, result: { stdout } },
      ...(variant === "nft" ? [{ run: missing, result: { code: 1, stderr } }] : []),
    ]);
    const tool = new IptablesTool({ exec, clock: new TestClock(0), log: quiet }, "IPv4", { ...NFT, variant, suffix: `-${variant}` });
    expect((await tool.saveChains({ nat: ["A", "B"], filter: [], mangle: [] }, signal)).nat).toBe(":A - [0:0]\n");
  });

  it("lists legacy tables one by one where it may not know which there are", async () => {
    const stderr = "Failed to list table names in /proc/net/ip_tables_names: Permission denied\n";
    const exec = createFakeExec([
      { run: ["iptables-legacy-save"], result: { code: 1, stderr } },
      ...["filter", "nat", "mangle"].map((table) => ({ run: ["iptables-legacy-save", "-t", table], result: { stdout: `*${table}\n` } })),
    ]);
    const tool = new IptablesTool({ exec, clock: new TestClock(0), log: quiet }, "IPv4", { ...NFT, variant: "legacy", suffix: "-legacy" });
    expect(await tool.saveAll(signal)).toEqual({ filter: "*filter\n", nat: "*nat\n", mangle: "*mangle\n" });
  });

  it("looks once for all who ask at the same time, also when the first of them gives up", async () => {
    const started: string[] = [];
    const exec: Exec = {
      run: async (file, args, options) => {
        started.push([file, ...args].join(" "));
        await setImmediate();
        if (options?.signal?.aborted === true) throw new ProxyError("canceled", "given up");
        return { code: 0, stdout: args[0] === "-V" ? "iptables v1.8.9 (legacy)\n" : "", stderr: "" };
      },
      open: () => expect.unreachable(),
    };
    const tool = new IptablesTool({ exec, clock: new TestClock(0), log: quiet }, "IPv4", "legacy");
    const first = new AbortController();
    const all = Promise.allSettled([tool.choice(first.signal), tool.choice(signal), tool.choice(signal)]);
    first.abort();
    expect((await all).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
    // The one that was given up, and the one that wasn't.
    expect(started.filter((line) => line === "iptables-legacy -V")).toHaveLength(2);
    await tool.choice(signal);
    expect(started.filter((line) => line === "iptables-legacy -V")).toHaveLength(2);
  });
});

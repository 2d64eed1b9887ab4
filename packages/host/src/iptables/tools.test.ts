import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { chooseIptables, iptablesName, lackingFamilies, loadLegacyModules, parseIptablesVersion } from "./tools.ts";

const { signal } = new AbortController();

/**
 * A host whose `iptables` is one variant, with what each variant holds for IPv4; a variant without text isn't installed. `tables`: what the kernel says
 * the legacy variant has, where it may be asked.
 */
function hostOf(
  plain: "nft" | "legacy" | undefined,
  saved: Partial<Record<"nft" | "legacy", string>>,
  calls: string[] = [],
  tables?: readonly string[],
): Exec {
  const missing = (file: string): never => {
    throw new ProxyError("tool_missing", `${file} is not installed`);
  };
  const run: Exec["run"] = (file, args) => {
    calls.push([file, ...args].join(" "));
    if (file === "cat") {
      if (tables === undefined) return Promise.resolve({ code: 1, stdout: "", stderr: "cat: Permission denied\n" });
      return Promise.resolve({ code: 0, stdout: tables.map((table) => `${table}\n`).join(""), stderr: "" });
    }
    const [, word] = /^ip6?tables(?:-(nft|legacy))?(?:-save)?$/.exec(file) ?? [];
    const variant = (word ?? plain) as "nft" | "legacy" | undefined;
    const text = variant === undefined ? undefined : saved[variant];
    if (variant === undefined || text === undefined) return Promise.reject(new Error("unreachable")).catch(() => missing(file));
    const [, , asked, chain = ""] = args;
    // The nft variant's complaint about a chain that isn't there.
    const stderr = `iptables v1.8.9 (nf_tables): chain \`${chain}' in table \`mangle' is incompatible, use 'nft' tool.\n`;
    const hasChain = text.includes(`:${chain} `) && !file.startsWith("ip6");
    if (asked === "-S")
      return Promise.resolve(hasChain ? { code: 0, stdout: `-N ${chain}\n`, stderr: "" } : { code: 1, stdout: "", stderr });
    const stdout =
      args[0] === "-V" ? `iptables v1.8.9 (${variant === "nft" ? "nf_tables" : "legacy"})\n` : file.startsWith("ip6") ? "" : text;
    return Promise.resolve({ code: 0, stdout, stderr: "" });
  };
  return {
    run,
    open: () => {
      throw new Error("nothing is kept");
    },
  };
}

const HINT = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
const CANARY = "*mangle\n:KUBE-PROXY-CANARY - [0:0]\nCOMMIT\n";
const RULES = "*filter\n-A INPUT -j ACCEPT\n-A FORWARD -j DOCKER\nCOMMIT\n";

describe("chooseIptables", () => {
  it.each<[string, Parameters<typeof hostOf>, string, string | undefined]>([
    ["nobody has rules: what iptables is", ["legacy", { nft: "", legacy: "" }], "legacy", undefined],
    ["nobody has rules: what iptables is", ["nft", { nft: "", legacy: "" }], "nft", undefined],
    ["kubelet's hint decides", ["nft", { nft: RULES, legacy: HINT }], "legacy", undefined],
    [
      "kubelet's before a service proxy's",
      ["legacy", { nft: HINT, legacy: CANARY }],
      "nft",
      "a service proxy's chains of the legacy variant",
    ],
    ["a service proxy's before the number of rules", ["nft", { nft: RULES, legacy: CANARY }], "legacy", undefined],
    [
      "kubelet's in both: one is used, the other told",
      ["nft", { nft: HINT, legacy: HINT }],
      "nft",
      "kubelet's chains of the legacy variant",
    ],
    ["most rules", ["nft", { nft: "", legacy: RULES }], "legacy", undefined],
    ["only one is installed", ["legacy", { legacy: "" }], "legacy", undefined],
  ])("%s", async (_, host, variant, mixed) => {
    const choice = await chooseIptables("auto", hostOf(...host), signal);
    expect({ variant: choice.variant, mixed: choice.mixed }).toEqual({ variant, mixed });
  });

  it("obeys who asks for a variant, and says what is in the other", async () => {
    const choice = await chooseIptables("legacy", hostOf("nft", { nft: HINT, legacy: "" }), signal);
    expect(choice).toMatchObject({ variant: "legacy", suffix: "-legacy", mixed: "kubelet's chains of the nft variant" });
  });

  it("says when there is none, or not the wanted one", async () => {
    await expect(chooseIptables("auto", hostOf(undefined, {}), signal)).rejects.toMatchObject({ code: "tool_missing" });
    await expect(chooseIptables("nft", hostOf("legacy", { legacy: "" }), signal)).rejects.toMatchObject({
      code: "tool_missing",
      what: "the nft variant of iptables is not installed",
    });
  });

  it("never asks the legacy variant for a table by name, which would make it", async () => {
    const calls: string[] = [];
    await chooseIptables("auto", hostOf("nft", { nft: "", legacy: "" }, calls), signal);
    expect(calls.filter((call) => call.includes("legacy-save"))).not.toEqual([]);
    expect(calls.filter((call) => call.includes("legacy-save -t"))).toEqual([]);
  });

  it("lists no more than a small table to see who is there", async () => {
    const calls: string[] = [];
    const choice = await chooseIptables("auto", hostOf("nft", { nft: "", legacy: CANARY }, calls, ["nat", "mangle"]), signal);
    expect(choice).toMatchObject({ variant: "legacy", because: "a service proxy's chains are there" });
    expect(calls.filter((call) => call.includes("-save"))).toEqual(["iptables-legacy-save -t mangle", "ip6tables-legacy-save -t mangle"]);
    calls.length = 0;
    expect((await chooseIptables("nft", hostOf("nft", { nft: HINT, legacy: "" }, calls, ["nat"]), signal)).variant).toBe("nft");
    expect(calls.filter((call) => call.includes("-save"))).toEqual([]);
  });
});

describe("names and versions", () => {
  it("names programs of both families and all variants", () => {
    expect(iptablesName("IPv6", { suffix: "-nft" }, "-restore")).toBe("ip6tables-nft-restore");
    expect(iptablesName("IPv4", { suffix: "" }, "-save")).toBe("iptables-save");
  });

  it.each([
    ["iptables v1.8.9 (nf_tables)", { version: "1.8.9", variant: "nft" }],
    ["ip6tables v1.8.10 (legacy)", { version: "1.8.10", variant: "legacy" }],
    ["iptables v1.6.2", { version: "1.6.2", variant: "legacy" }],
    ["something else v2", undefined],
  ])("reads %s", (text, expected) => {
    expect(parseIptablesVersion(text)).toEqual(expected);
  });
});

it("the legacy variant is asked for a table of each family, which loads its modules; the other is not", async () => {
  const calls: string[] = [];
  const exec = hostOf("legacy", { legacy: "", nft: "" }, calls);
  const program = await chooseIptables("legacy", exec, signal);
  calls.length = 0;
  await loadLegacyModules(program, exec, signal);
  expect(calls).toEqual(["iptables-legacy-save -t filter", "ip6tables-legacy-save -t filter"]);
  await loadLegacyModules(await chooseIptables("nft", exec, signal), hostOf(undefined, {}), signal);
});

describe("lackingFamilies", () => {
  const program = { variant: "legacy", version: "1.8.9", suffix: "-legacy" } as const;

  /** What the tool of IPv6 says; undefined: it is not installed. */
  function lacks(said: string | undefined): ReturnType<typeof lackingFamilies> {
    const run: Exec["run"] = (file) => {
      if (!file.startsWith("ip6")) return Promise.resolve({ code: 0, stdout: "-P POSTROUTING ACCEPT\n", stderr: "" });
      if (said === undefined) return Promise.reject(new ProxyError("tool_missing", `${file} is not installed`));
      return Promise.resolve({ code: 3, stdout: "", stderr: `${said}\n` });
    };
    return lackingFamilies(
      program,
      {
        run,
        open: () => {
          throw new Error("nothing is kept");
        },
      },
      signal,
    );
  }

  it("names a tool that is missing, and a table that the kernel hasn't", async () => {
    expect(await lacks(undefined)).toEqual({ IPv6: "ip6tables-legacy is not installed" });
    const said = "ip6tables v1.8.9 (legacy): can't initialize ip6tables table `nat': Table does not exist (do you need to insmod?)";
    expect(await lacks(said)).toEqual({ IPv6: said });
  });

  it.each([
    ["the lock is held", "Another app is currently holding the xtables lock. Perhaps you want to use the -w option?"],
    ["rights are missing", "ip6tables v1.8.9 (legacy): can't initialize ip6tables table `nat': Permission denied (you must be root)"],
    ["another program's rules hide the rest", "ip6tables v1.8.9 (nf_tables): Parsing nftables rule failed"],
  ])("lacks nothing where nobody can tell: %s", async (_name, said) => {
    expect(await lacks(said)).toEqual({});
  });
});

import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { describe, expect, it } from "vitest";
import type { NftTableName } from "@turnout/host";
import { readExternalTables, withServices } from "./external-tables.ts";

const { signal } = new AbortController();
/** One that holds more than packets come to. */
const table = (name: string, isIptables = false): NftTableName => ({ family: "ip", table: name, isIptables, chains: [], size: 99 });
const TABLES = [table("filter", true), table("mangle", true), table("kube-proxy"), table("turnout")];

it("a table that is not listed in time is named, and what else was read counts", async () => {
  const run = async (_file: string, args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    if (args.includes("mangle")) throw new ProxyError("timed_out", "iptables-nft took too long");
    return { code: 0, stdout: "-P FORWARD DROP\n", stderr: "" };
  };
  const tools = { exec: { run } as unknown as Exec, read: async () => undefined, netlink: { nftTables: async () => TABLES } };
  const { tables, proxyTables, unseen } = await readExternalTables(tools, "IPv4", signal);
  expect(tables.map(({ name }) => name)).toEqual(["iptables table filter"]);
  expect(proxyTables).toEqual(["ip kube-proxy", "ip turnout"]);
  expect(unseen).toEqual([{ what: "iptables table mangle", because: "[timed_out] iptables-nft took too long" }]);
});

it("nft is not asked where it has nothing to tell: it reads all elements that the kernel has", async () => {
  const asked: string[] = [];
  const run = async (file: string): Promise<{ code: number; stdout: string; stderr: string }> => {
    asked.push(file);
    return { code: 0, stdout: "", stderr: "" };
  };
  const tools = {
    exec: { run } as unknown as Exec,
    read: async () => undefined,
    netlink: { nftTables: async () => [table("turnout")] },
  };
  await readExternalTables(tools, "IPv4", signal);
  expect(asked).toEqual([]);
});

it.each([
  ["a proxy's, without a built-in chain, is iptables' to list", "-P FORWARD ACCEPT\n-N KUBE-PROXY-CANARY\n", "iptables table mangle"],
  [
    "one that nft has made is nft's to list",
    "# Table `mangle' contains incompatible base-chains, use 'nft' tool to list them.\n",
    "table ip mangle",
  ],
])("of tables that are named as iptables' %s", async (_which, listed, name) => {
  const run = async (file: string): Promise<{ code: number; stdout: string; stderr: string }> => {
    const listing = JSON.stringify({ nftables: [] });
    return { code: 0, stdout: file === "nft" ? listing : listed, stderr: "" };
  };
  const tools = { exec: { run } as unknown as Exec, read: async () => undefined, netlink: { nftTables: async () => [table("mangle")] } };
  const { tables, unseen } = await readExternalTables(tools, "IPv4", signal);
  expect([tables.map((one) => one.name), unseen]).toEqual([[name], []]);
});

/** Tools that print chains of a table; what they were asked is noted. */
function chainTools(
  chains: Readonly<Record<string, string>>,
  asked: string[],
  of: NftTableName = table("nat", true),
): Parameters<typeof readExternalTables>[0] {
  const missing = { code: 1, stdout: "", stderr: "chain is incompatible\n" };
  const run = async (file: string, args: readonly string[], { input = "" }: { input?: string }): Promise<typeof missing> => {
    const names = file.endsWith("-restore") ? [...input.matchAll(/^-S (.*)$/gm)].map(([, name = ""]) => name) : [args.at(-1) ?? ""];
    asked.push(`${file} ${names.join(" ")}`);
    if (!names.every((name) => name in chains)) return missing;
    return { code: 0, stdout: names.map((name) => chains[name]).join(""), stderr: "" };
  };
  return { exec: { run } as unknown as Exec, read: async () => undefined, netlink: { nftTables: async () => [of] } };
}

const NAT = {
  PREROUTING: "-P PREROUTING ACCEPT\n-A PREROUTING -j KUBE-SERVICES\n-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n",
  OUTPUT: "-P OUTPUT ACCEPT\n-A OUTPUT -j DOCKER\n",
  POSTROUTING: "-P POSTROUTING ACCEPT\n-A POSTROUTING -j MASQUERADE\n",
  DOCKER: "-N DOCKER\n-A DOCKER -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:80\n",
};

it("of nat the chains that packets come to are read, a run for those that are found together", async () => {
  const asked: string[] = [];
  const { tables } = await readExternalTables(chainTools(NAT, asked), "IPv4", signal);
  expect(asked).toEqual(["iptables-nft-restore PREROUTING OUTPUT POSTROUTING", "iptables-nft-restore DOCKER"]);
  expect([...(tables[0]?.chains.keys() ?? [])]).toEqual(["PREROUTING", "OUTPUT", "POSTROUTING", "DOCKER"]);
});

it("a target that nobody here knows is no chain that is missing", async () => {
  const asked: string[] = [];
  const chains = { ...NAT, POSTROUTING: "-P POSTROUTING ACCEPT\n-A POSTROUTING -j NETMAP --to 10.0.0.0/8\n" };
  const { tables, unseen } = await readExternalTables(chainTools(chains, asked), "IPv4", signal);
  expect(asked.slice(1)).toEqual(["iptables-nft-restore DOCKER NETMAP", "iptables-nft DOCKER", "iptables-nft NETMAP"]);
  expect([tables[0]?.chains.has("DOCKER"), unseen]).toEqual([true, []]);
});

it("kube-proxy's addresses are read where packets come to its chain", async () => {
  const asked: string[] = [];
  const services = "-N KUBE-SERVICES\n-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A\n";
  const servicesOf = async (chains: Readonly<Record<string, string>>): Promise<unknown> => {
    const tools = chainTools(chains, asked);
    const { tables, unseen } = await withServices(tools.exec, await readExternalTables(tools, "IPv4", signal), signal);
    return [tables[0]?.chains.get("KUBE-SERVICES")?.rules.map(({ text }) => text), tables[0]?.chains.has("PREROUTING"), unseen];
  };
  expect(await servicesOf({ ...NAT, "KUBE-SERVICES": services })).toEqual([["-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A"], true, []]);
  expect(await servicesOf({ ...NAT, PREROUTING: "-P PREROUTING ACCEPT\n" })).toEqual([undefined, true, []]);
  const unseen = [
    { what: "KUBE-SERVICES of iptables table nat", because: expect.stringContaining("[tool_failed] iptables-nft") as unknown },
  ];
  expect(await servicesOf(NAT)).toEqual([undefined, true, unseen]);
});

describe("a table that iptables has made", () => {
  const FILTER = {
    INPUT: "-P INPUT ACCEPT\n",
    FORWARD: "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n-A FORWARD -j LOG\n",
    "KUBE-PROXY-CANARY": "-N KUBE-PROXY-CANARY\n",
    "DOCKER-USER": "-N DOCKER-USER\n-A DOCKER-USER -j RETURN\n",
  };
  const chains = ["INPUT", "FORWARD", "KUBE-PROXY-CANARY"];

  it.each([
    ["is read without walking all chains where packets come to all it has", 4, ["iptables-nft-restore DOCKER-USER"]],
    ["is listed as a whole where it has more", 5, ["iptables-nft-restore DOCKER-USER", "iptables-nft -S"]],
  ] as const)("%s", async (_what, size, runs) => {
    const asked: string[] = [];
    const tools = chainTools({ ...FILTER, "-S": Object.values(FILTER).join("") }, asked, { ...table("filter", true), chains, size });
    const { tables, unseen } = await readExternalTables(tools, "IPv4", signal);
    expect(asked).toEqual([`iptables-nft-restore ${chains.join(" ")}`, ...runs]);
    expect([[...(tables[0]?.chains.keys() ?? [])].toSorted(), unseen]).toEqual([Object.keys(FILTER).toSorted(), []]);
  });
});

it.each([
  [
    "the chains that packets come to, in one run",
    NAT,
    ["iptables-legacy-restore PREROUTING OUTPUT POSTROUTING", "iptables-legacy-restore DOCKER"],
  ],
  [
    "as a whole where they can't be listed, e.g. because somebody holds the lock",
    {},
    ["iptables-legacy-restore PREROUTING OUTPUT POSTROUTING"],
  ],
] as const)("nat of the legacy variant is read: %s", async (_what, chains, runs) => {
  const asked: string[] = [];
  const { exec, netlink } = chainTools(
    { ...chains, filter: ":FORWARD DROP [0:0]\n", nat: ":OUTPUT ACCEPT [0:0]\n" },
    asked,
    table("turnout"),
  );
  const read = async (path: string): Promise<string | undefined> => (path === "/proc/net/ip_tables_names" ? "nat\nfilter\n" : undefined);
  const { tables, unseen } = await readExternalTables({ exec, netlink, read }, "IPv4", signal);
  expect(asked.filter((run) => run.includes("-restore"))).toEqual(runs);
  expect(tables.map(({ name, chains: { size } }) => [name, size])).toEqual([
    ["iptables-legacy table nat", chains === NAT ? 4 : 1],
    ["iptables-legacy table filter", 1],
  ]);
  expect(unseen).toEqual([]);
});

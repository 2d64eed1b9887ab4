import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { expect, it } from "vitest";
import type { NftTableName } from "../netlink/nft-tables.ts";
import { readForeignTables } from "./foreign-tables.ts";

const { signal } = new AbortController();
const table = (name: string, isIptables = false): NftTableName => ({ family: "ip", table: name, isIptables });
const TABLES = [table("filter", true), table("mangle", true), table("kube-proxy"), table("turnout")];

it("a table that is not listed in time is named, and what else was read counts", async () => {
  const run = async (_file: string, args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    if (args.includes("mangle")) throw new ProxyError("timed_out", "iptables-nft took too long");
    return { code: 0, stdout: "-P FORWARD DROP\n", stderr: "" };
  };
  const tools = { exec: { run } as unknown as Exec, read: async () => undefined, netlink: { nftTables: async () => TABLES } };
  const { tables, proxyTables, unseen } = await readForeignTables(tools, "IPv4", { readsServices: false }, signal);
  expect(tables.map(({ name }) => name)).toEqual(["iptables table filter"]);
  expect(proxyTables).toEqual(["ip kube-proxy", "ip turnout"]);
  expect(unseen).toEqual(["foreign rules (iptables table mangle): [timed_out] iptables-nft took too long"]);
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
  await readForeignTables(tools, "IPv4", { readsServices: false }, signal);
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
  const { tables, unseen } = await readForeignTables(tools, "IPv4", { readsServices: false }, signal);
  expect([tables.map((one) => one.name), unseen]).toEqual([[name], []]);
});

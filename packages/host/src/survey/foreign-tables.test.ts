import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { expect, it } from "vitest";
import type { NftChain } from "../netlink/nft-chains.ts";
import { readForeignTables } from "./foreign-tables.ts";

const { signal } = new AbortController();
const chain = (table: string, name: string, hook = "forward"): NftChain => ({
  family: "ip",
  table,
  name,
  base: { type: "filter", hook, priority: 0, policy: "accept" },
});
const CHAINS = [
  chain("filter", "FORWARD"),
  chain("mangle", "FORWARD"),
  chain("kube-proxy", "nat-prerouting"),
  chain("turnout", "nat-prerouting"),
];

it("a table that is not listed in time is named, and what else was read counts", async () => {
  const run = async (_file: string, args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> => {
    if (args.includes("mangle")) throw new ProxyError("timed_out", "iptables-nft took too long");
    return { code: 0, stdout: "-P FORWARD DROP\n", stderr: "" };
  };
  const tools = { exec: { run } as unknown as Exec, read: async () => undefined, netlink: { nftChains: async () => CHAINS } };
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
    netlink: { nftChains: async () => [chain("turnout", "nat-prerouting")] },
  };
  await readForeignTables(tools, "IPv4", { readsServices: false }, signal);
  expect(asked).toEqual([]);
});

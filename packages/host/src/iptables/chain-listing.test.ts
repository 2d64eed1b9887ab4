import { describe, expect, it } from "vitest";
import { createFakeExec } from "../testing/fake-exec.ts";
import { listChains } from "./chain-listing.ts";
import type { ChainPlace } from "./chain-listing.ts";

const { signal } = new AbortController();
const SERVICES: ChainPlace = { table: "nat", chain: "KUBE-SERVICES" };
const INPUT: ChainPlace = { table: "filter", chain: "INPUT" };
const OUTPUT: ChainPlace = { table: "nat", chain: "OUTPUT" };

/** What is listed by a tool that prints this. */
async function listed(places: readonly ChainPlace[], stdout: string, code = 0): Promise<readonly string[] | undefined> {
  const chains = (table: string): string => places.flatMap((place) => (place.table === table ? [`-S ${place.chain}\n`] : [])).join("");
  const input = ["nat", "filter"].flatMap((table) => (chains(table) === "" ? [] : [`*${table}\n${chains(table)}COMMIT\n`])).join("");
  const run = ["iptables-nft-restore", "-w", "2", "--noflush"];
  const exec = createFakeExec(places.length === 0 ? [] : [{ run, input, result: { stdout, code } }]);
  return await listChains(places, { exec, restore: "iptables-nft-restore", options: { signal } });
}

const SERVICES_TEXT = "-N KUBE-SERVICES\n-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A\n";
const OUTPUT_TEXT = "-P OUTPUT ACCEPT\n";
const INPUT_TEXT = '-P INPUT DROP\n-A INPUT -m comment --comment "a -N B" -j ACCEPT\n';

describe("chains of several tables in one run", () => {
  it("are told in the order in which they are asked for", async () => {
    // Table by table, as the tool wants them.
    const stdout = SERVICES_TEXT + OUTPUT_TEXT + INPUT_TEXT;
    expect(await listed([SERVICES, INPUT, OUTPUT], stdout)).toEqual([SERVICES_TEXT, INPUT_TEXT, OUTPUT_TEXT]);
  });

  it.each([
    ["one is missing, and the tool stops there", SERVICES_TEXT, 1],
    ["fewer are printed than were asked for", SERVICES_TEXT, 0],
    ["others are printed", SERVICES_TEXT + INPUT_TEXT, 0],
    ["a comment has a line of its own that looks like a chain", `${SERVICES_TEXT}-A X --comment "\n-N Y"\n${OUTPUT_TEXT}`, 0],
  ])("are not told where %s", async (_why, stdout, code) => {
    expect(await listed([SERVICES, OUTPUT], stdout, code)).toBeUndefined();
  });

  it("are asked for by names that the tool takes for one word, or not at all", async () => {
    const exec = createFakeExec([]);
    for (const chain of ["a b", 'a"', "-F", ""])
      expect(await listChains([{ table: "nat", chain }], { exec, restore: "iptables-nft-restore", options: { signal } })).toBeUndefined();
    expect(await listed([], "")).toEqual([]);
  });
});

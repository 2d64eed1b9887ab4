import { ProxyError, type Exec, type ExecResult } from "@turnout/core";
import { expect, test } from "vitest";
import { listedOnce } from "./listed-once.ts";

function counting(): { readonly exec: Exec; readonly calls: string[] } {
  const calls: string[] = [];
  const run = async (file: string, args: readonly string[]): Promise<ExecResult> => {
    calls.push([file, ...args].join(" "));
    if (calls.length === 1 && args[0] === "-V") throw new ProxyError("timed_out", "it is slow");
    return { code: 0, stdout: `${calls.length}`, stderr: "" };
  };
  return { exec: { run, open: () => expect.unreachable() }, calls };
}

test("each listing of iptables is run once, whoever asks and when", async () => {
  const { exec, calls } = counting();
  const once = listedOnce(exec);
  const asked = ["iptables-nft-save", "ip6tables-legacy-save", "iptables-nft-save"].map((file) => once.run(file, []));
  expect((await Promise.all(asked)).map(({ stdout }) => stdout)).toEqual(["1", "2", "1"]);
  await once.run("iptables-nft", ["-t", "nat", "-S", "PREROUTING"]);
  await once.run("iptables-nft", ["-t", "nat", "-S", "PREROUTING"]);
  expect(calls).toEqual(["iptables-nft-save", "ip6tables-legacy-save", "iptables-nft -t nat -S PREROUTING"]);
});

test("what is no listing is run as often as it is asked for, and what failed again", async () => {
  const { exec, calls } = counting();
  const once = listedOnce(exec);
  await expect(once.run("iptables", ["-V"])).rejects.toThrow("it is slow");
  await once.run("iptables", ["-V"]);
  for (const args of [
    ["-t", "nat", "-N", "X"],
    ["-t", "nat", "-N", "X"],
  ])
    await once.run("iptables", args);
  for (const file of ["nft", "nft"]) await once.run(file, ["list", "tables"]);
  expect(calls).toHaveLength(6);
});

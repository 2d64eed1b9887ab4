import { expect, it } from "vitest";
import { createFakeExec } from "../testing/index.ts";
import { tryNftWrite } from "./crash.ts";

const { signal } = new AbortController();
const run = ["nft", "-c", "-f", "-"];
/** What is tried of a family. */
const trialOf = (family: string): string => `add table ${family} turnout-trial
add chain ${family} turnout-trial trial { type nat hook prerouting priority -100; }
add rule ${family} turnout-trial trial accept
`;
const [ip, ip6] = [trialOf("ip"), trialOf("ip6")];

it("a write that changes nothing is tried once where it succeeds", async () => {
  const exec = createFakeExec([{ run, input: ip + ip6, result: {} }]);
  expect(await tryNftWrite(exec, "nft", signal)).toEqual({ crash: undefined, lacks: {} });
  exec.done();
});

it("a family that nft can't make rules of is found where the write of both fails", async () => {
  const stderr = "Error: Could not process rule: Operation not supported\nadd table ip6 turnout-trial\n";
  const exec = createFakeExec([
    { run, input: ip + ip6, result: { code: 1, stderr } },
    { run, input: ip, result: {} },
    { run, input: ip6, result: { code: 1, stderr } },
  ]);
  expect((await tryNftWrite(exec, "nft", signal)).lacks).toEqual({
    IPv6: "nft can't make its rules here (Error: Could not process rule: Operation not supported)",
  });
  exec.done();
});

import { TestClock } from "@turnout/core/testing";
import { ProxyError } from "@turnout/core";
import type { Exec, ExecResult } from "@turnout/core";
import { beforeEach, describe, expect, it } from "vitest";
import { complainedLine, iptablesError, isLockHeld } from "./errors.ts";
import { restoreIptables, runLocked } from "./restore.ts";
import { createFakeExec } from "../testing/index.ts";

const INPUT = "*nat\n-D KUBE-SERVICES -j DROP\nCOMMIT\n";
const HELD =
  "Can't lock /run/xtables.lock: Resource temporarily unavailable\nAnother app is currently holding the xtables lock. Stopped waiting after 1s.\n";
const { signal } = new AbortController();

describe("iptablesError", () => {
  it.each<[string, string, string, string]>([
    [
      "no rights, nft",
      "iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)",
      "permission_denied",
      "",
    ],
    ["no rights, legacy", "Fatal: can't open lock file /run/xtables.lock: Permission denied", "permission_denied", ""],
    [
      "an extension that isn't there",
      "iptables-restore v1.8.9 (legacy): Couldn't load match `recent':No such file or directory\n\nError occurred at line: 2\nTry `iptables-restore -h' for more information.",
      "host_unsupported",
      "-D KUBE-SERVICES",
    ],
    [
      "a rule that isn't there, nft",
      "iptables-nft-restore: line 2 failed: Bad rule (does a matching rule exist in that chain?).",
      "not_found",
      "-D KUBE-SERVICES",
    ],
    [
      "a chain that isn't there, nft",
      "iptables-nft-restore: line 2 failed: No chain/target/match by that name.",
      "not_found",
      "-D KUBE-SERVICES",
    ],
    [
      "a chain somebody uses, nft",
      "iptables-nft-restore v1.8.9 (nf_tables): \nline 3: CHAIN_DEL failed (Device or resource busy): chain KUBE-SEP-X",
      "tool_failed",
      "COMMIT",
    ],
    [
      "a rule of nft's that can't be read",
      "Error: unknown ipv4 meta key\niptables-nft-save v1.8.9 (nf_tables): Parsing nftables rule failed\nPerhaps iptables-nft-save or your kernel needs to be upgraded.",
      "host_unsupported",
      "unknown ipv4 meta key",
    ],
    ["no reason, legacy", "iptables-restore: line 2 failed", "tool_failed", "-D KUBE-SERVICES"],
    ["words in a comment", 'bad rule "Permission denied, line 3: Couldn\'t load match"', "tool_failed", ""],
    ["nothing at all", "", "tool_failed", "no message"],
  ])("%s", (_, stderr, code, mentions) => {
    const error = iptablesError(stderr, "apply a change", INPUT);
    expect(error.code).toBe(code);
    expect(error.object).toContain(mentions);
  });

  it("finds the line that was complained about", () => {
    expect(complainedLine("iptables-restore: line 17 failed")).toBe(17);
    expect(complainedLine("Error occurred at line: 4")).toBe(4);
    expect(complainedLine('comment "line 3"')).toBeUndefined();
  });

  it("tells the lock from other lacks of resources", () => {
    expect(isLockHeld(4, HELD)).toBe(true);
    expect(isLockHeld(4, "Could not fetch rule set generation id: Permission denied")).toBe(false);
    expect(isLockHeld(1, HELD)).toBe(false);
  });
});

describe("runLocked", () => {
  let waits: number[] = [];
  beforeEach(() => {
    waits = [];
  });
  const waited = (ms: number): void => void waits.push(ms);
  const args = ["iptables-restore", "-w", "1", "--noflush"];
  const held = { run: args, input: INPUT, result: { code: 4, stderr: HELD } };

  it("comes back for the lock, after pauses of different length, and says what waiting cost", async () => {
    const clock = new TestClock(0);
    const exec = createFakeExec([held, held, { run: args, input: INPUT }]);
    const pauses = [0, 0.5];
    const random = (): number => pauses.shift() ?? 0;
    const done = restoreIptables("iptables-restore", INPUT, { exec, clock, random, signal, waited });
    await clock.advance(50);
    await clock.advance(74);
    expect(pauses).toEqual([]);
    await clock.advance(1);
    expect(await done).toMatchObject({ code: 0 });
    expect(waits).toEqual([125]);
    exec.done();
  });

  it("gives up on somebody who never lets go", async () => {
    const clock = new TestClock(0);
    const result: ExecResult = { code: 4, stdout: "", stderr: HELD };
    const exec: Pick<Exec, "run"> = {
      run: async () => {
        await clock.sleep(1_000, signal);
        return result;
      },
    };
    const run = { exec: exec as Exec, clock, random: (): number => 0, signal, waited };
    const done = runLocked("iptables", ["-S"], run).catch((error: unknown) => error);
    await clock.advance(40_000);
    expect(await done).toMatchObject({ code: "timed_out", hint: "see who: lslocks | grep xtables" });
    // 28 pauses, and 29 tries of a second: those that got nothing count as well.
    expect(waits).toEqual([30_400]);
  });

  it("sets no short alarm where input comes as the tool reads", async () => {
    const input = `*nat\n${"# x\n".repeat(10_000)}COMMIT\n`;
    const exec = createFakeExec([{ run: ["iptables-restore", "-w", "600", "--noflush"], input }]);
    const done = restoreIptables("iptables-restore", input, { exec, clock: new TestClock(0), random: () => 0, signal, waited });
    expect(await done).toMatchObject({ code: 0 });
    expect(waits).toEqual([]);
  });

  it("doesn't wait for anything but the lock, and says what waiting cost also when it fails then", async () => {
    const clock = new TestClock(0);
    const failing = { run: args, input: INPUT, result: { code: 1, stderr: "iptables-restore: line 2 failed" } };
    const fail = (exec: Exec): Promise<unknown> =>
      restoreIptables("iptables-restore", INPUT, { exec, clock, random: () => 0, signal, waited }).catch((error: unknown) => error);
    expect(await fail(createFakeExec([failing]))).toMatchObject({ code: "tool_failed" });
    expect(waits).toEqual([]);
    const failed = fail(createFakeExec([held, failing]));
    await clock.advance(50);
    expect(await failed).toMatchObject({ code: "tool_failed" });
    expect(waits).toEqual([50]);
  });

  it("stops waiting when it is told to", async () => {
    const clock = new TestClock(0);
    const stop = new AbortController();
    const run = { exec: createFakeExec([held]), clock, random: (): number => 0, signal: stop.signal, waited };
    const done = restoreIptables("iptables-restore", INPUT, run).catch((error: unknown) => error);
    await clock.advance(10);
    stop.abort();
    expect(ProxyError.is(await done, "canceled")).toBe(true);
  });
});

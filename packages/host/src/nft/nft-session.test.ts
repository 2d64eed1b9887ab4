import { ProxyError } from "@turnout/core";
import { OwnCommits } from "@turnout/host";
import type { NftElements, NftStatement } from "@turnout/host/nft-statement";
import type { Exec, ExecResult } from "@turnout/core";
import { createFakeLog } from "@turnout/host/testing";
import { describe, expect, it, vi } from "vitest";
import { NftSession } from "./nft-session.ts";

const { signal } = new AbortController();
const ADD_TABLE: NftStatement = { add: { table: { family: "ip", name: "turnout" } } };
const ruleIn = (chain: string): NftStatement => ({ add: { rule: { family: "ip", table: "turnout", chain, expr: [{ drop: null }] } } });

const sessionWith = (exec: Exec, log = createFakeLog()): NftSession =>
  new NftSession({ exec, log, own: new OwnCommits(), table: "ip turnout" }, "nft");

/** Programs that all hang: each is given up when its time is over, which is at once. */
class Hung implements Exec {
  readonly asked: { readonly what: string; readonly timeoutMs: number }[] = [];
  started = 0;

  run(): Promise<never> {
    return Promise.reject(new Error("nothing is run"));
  }

  open(_file: string, args: readonly string[]): ReturnType<Exec["open"]> {
    this.started++;
    return { pid: 1, close: () => undefined, finish: (_input, options = {}) => this.#hang(args.join(" "), options.timeoutMs ?? 0) };
  }

  #hang(what: string, timeoutMs: number): Promise<never> {
    this.asked.push({ what, timeoutMs });
    return Promise.reject(new ProxyError("timed_out", "no answer"));
  }
}

describe("an nft that hangs", () => {
  it("is given up within seconds where little was asked, and another is started, with more time each time", async () => {
    const exec = new Hung();
    const session = sessionWith(exec);
    for (let count = 0; count < 8; count++) await expect(session.commit([ADD_TABLE], signal)).rejects.toThrow("no answer");
    const times = exec.asked.map(({ timeoutMs }) => timeoutMs);
    expect(exec.started).toBe(8);
    // The first one loads modules of the kernel, and takes its time on a slow machine.
    expect(times[0]).toBeGreaterThan(10_000);
    expect(times[0]).toBeLessThan(20_000);
    expect(times.slice(0, 4)).toEqual([1, 2, 4, 8].map((factor) => (times[0] ?? 0) * factor));
    expect(times.at(-1)).toBeLessThan(120_000);
  });

  it("gets time in proportion to what it is given", async () => {
    const exec = new Hung();
    const session = sessionWith(exec);
    const statement: NftStatement = { add: { table: { family: "ip", name: "x".repeat(1_000_000) } } };
    await expect(session.commit([statement], signal)).rejects.toThrow("no answer");
    const small = exec.asked[0]?.timeoutMs ?? 0;
    const other = sessionWith(exec);
    await expect(
      other.commit(
        Array.from({ length: 40 }, () => statement),
        signal,
      ),
    ).rejects.toThrow("no answer");
    expect(exec.asked[1]?.timeoutMs).toBeGreaterThan(10 * small);
  });
});

describe("a transaction", () => {
  const elements: NftElements = {
    verb: "add",
    family: "ip",
    table: "t",
    set: "s",
    parts: ["address"],
    elements: [{ key: "10.0.0.1", value: "", comment: "" }],
  };
  /** What was given to nft, and to the kernel, and how many of nft were started and closed. */
  const sessionOf = (): {
    readonly session: NftSession;
    readonly nft: string[];
    readonly kernel: NftElements[];
    readonly started: () => number;
    readonly closed: () => number;
  } => {
    const [nft, kernel]: [string[], NftElements[]] = [[], []];
    let [started, closed] = [0, 0];
    const exec: Exec = {
      run: () => Promise.reject(new Error("nothing is run")),
      open: () => {
        started++;
        const finish = (input: string): Promise<ExecResult> => {
          nft.push(input);
          return Promise.resolve({ code: 0, stdout: "", stderr: "" });
        };
        return { pid: 1, finish, close: () => void closed++ };
      },
    };
    const prepareNftWrite = (statements: readonly NftElements[]) => async (): Promise<void> => void kernel.push(...statements);
    const host = {
      exec,
      log: createFakeLog(),
      own: new OwnCommits(),
      table: "ip turnout",
      kernel: { netlink: { prepareNftWrite }, clock: { nowMs: () => 0 } },
    };
    return { session: new NftSession(host, "nft"), nft, kernel, started: () => started, closed: () => closed };
  };

  it("of elements alone goes to the kernel, and with anything else through nft", async () => {
    const { session, nft, kernel } = sessionOf();
    await session.commit([elements], signal);
    expect([nft, kernel]).toEqual([[], [elements]]);
    await session.commit([{ flush: { chain: { family: "ip", table: "t", name: "c" } } }, elements], signal);
    expect([nft, kernel.length]).toEqual([["flush chain ip t c\nadd element ip t s { 10.0.0.1 }\n"], 1]);
    session.close();
  });

  it("finds an nft that was started for it, and starts that of the next one, which ends when there is none for a while", async () => {
    vi.useFakeTimers();
    try {
      const { session, nft, started, closed } = sessionOf();
      session.start();
      expect(started()).toBe(1);
      await session.commit([ADD_TABLE], signal);
      await vi.advanceTimersByTimeAsync(7_000);
      await session.commit([ADD_TABLE], signal);
      await vi.advanceTimersByTimeAsync(7_000);
      expect([nft.length, started(), closed()]).toEqual([2, 3, 0]);
      await vi.advanceTimersByTimeAsync(7_000);
      expect(closed()).toBe(1);
      await session.commit([ADD_TABLE], signal);
      expect([nft.length, started()]).toEqual([3, 4]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("an nft that crashes", () => {
  const SEGFAULT: ExecResult = {
    code: 139,
    stdout: "",
    stderr: "Error: nft crashed (SIGSEGV): install a newer version of it\n",
    signal: "SIGSEGV",
  };
  const DONE: ExecResult = { code: 0, stdout: "", stderr: "" };

  /** An nft 1.0.6 that ends as `end` says of what it is given. */
  const sessionOf = (end: (args: string, input: string) => ExecResult) => {
    const given: string[] = [];
    const log = createFakeLog();
    const exec: Exec = {
      run: () => Promise.resolve({ ...DONE, stdout: "nftables v1.0.6 (Lester Gooch #5)\n" }),
      open: (_file, args) => ({
        pid: 1,
        close: () => undefined,
        finish: (input) => {
          given.push(`${args.join(" ")}: ${input.trimEnd().replaceAll("\n", "; ")}`);
          return Promise.resolve(end(args.join(" "), input));
        },
      }),
    };
    return { session: sessionWith(exec, log), given, log };
  };

  it("at other programs' sets is tried again without them, which is logged once, and stays so", async () => {
    const { session, given, log } = sessionOf((_, input) => (input.endsWith("list table ip turnout\n") ? DONE : SEGFAULT));
    await session.commit([ruleIn("c")], signal);
    await session.commit([ruleIn("d")], signal);
    expect(given).toEqual([
      "-f -: add rule ip turnout c drop",
      "-t -f -: add rule ip turnout c drop; list table ip turnout",
      "-t -f -: add rule ip turnout d drop; list table ip turnout",
    ]);
    expect(log.lines).toEqual([
      expect.stringMatching(/^warn nft crashed; .*nft 1\.0\.6 crashes on this host \(SIGSEGV\): .*install nft 1\.1 or newer/),
    ]);
  });

  it("in any case is an error that names the signal, the version and what to do", async () => {
    await expect(sessionOf(() => SEGFAULT).session.commit([ruleIn("c")], signal)).rejects.toThrow(
      "[tool_failed] nft 1.0.6 crashes on this host (SIGSEGV): a newer nft made a set or map that it can't read: install nft 1.1 or newer, or use Turnout's image",
    );
  });

  it("did not crash where another program ended it: the error says so, and it is not tried again", async () => {
    const stderr = "Error: nft was ended by SIGTERM: another program sent it\n";
    const { session, given } = sessionOf(() => ({ code: 143, stdout: "", stderr, signal: "SIGTERM" }));
    await expect(session.commit([ADD_TABLE], signal)).rejects.toThrow(stderr.trim());
    expect(given).toHaveLength(1);
  });
});

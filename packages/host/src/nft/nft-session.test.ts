import { ProxyError } from "@turnout/core";
import { OwnCommits } from "@turnout/host";
import type { NftElements } from "@turnout/host/nft-statement";
import type { Exec, ExecResult } from "@turnout/core";
import { describe, expect, it, vi } from "vitest";
import { NftSession } from "./nft-session.ts";

const { signal } = new AbortController();

/** Programs that all hang: each is given up when its time is over, which is at once. */
class Hung implements Exec {
  readonly asked: { readonly what: string; readonly timeoutMs: number }[] = [];
  started = 0;

  run(_file: string, args: readonly string[], options: { readonly timeoutMs?: number } = {}): Promise<never> {
    return this.#hang(args.join(" "), options.timeoutMs ?? 0);
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
    const session = new NftSession({ exec, own: new OwnCommits() }, "nft");
    for (let count = 0; count < 8; count++) await expect(session.commit(["add table ip turnout"], signal)).rejects.toThrow("no answer");
    const times = exec.asked.map(({ timeoutMs }) => timeoutMs);
    expect(exec.started).toBe(8);
    expect(times[0]).toBeLessThan(5_000);
    expect(times.slice(0, 4)).toEqual([1, 2, 4, 8].map((factor) => (times[0] ?? 0) * factor));
    expect(times.at(-1)).toBeLessThan(120_000);
  });

  it("gets time in proportion to what it is given", async () => {
    const exec = new Hung();
    const session = new NftSession({ exec, own: new OwnCommits() }, "nft");
    const statement = "x".repeat(1_000_000);
    await expect(session.commit([statement], signal)).rejects.toThrow("no answer");
    const small = exec.asked[0]?.timeoutMs ?? 0;
    const other = new NftSession({ exec, own: new OwnCommits() }, "nft");
    await expect(
      other.commit(
        Array.from({ length: 40 }, () => statement),
        signal,
      ),
    ).rejects.toThrow("no answer");
    expect(exec.asked[1]?.timeoutMs).toBeGreaterThan(10 * small);
  });

  it("that lists gets more time with each try: what is there may be much", async () => {
    const exec = new Hung();
    const session = new NftSession({ exec, own: new OwnCommits() }, "nft");
    for (let count = 0; count < 6; count++) await expect(session.listTable("ip", "turnout", signal)).rejects.toThrow("no answer");
    expect(exec.asked.at(-1)?.timeoutMs).toBe(32 * (exec.asked[0]?.timeoutMs ?? 0));
  });
});

describe("a table that is dropped", () => {
  const refused = "Error: Could not process rule: Operation not supported\nadd table ip turnout\n";

  /** An nft whose transactions the kernel refuses, and which lists these tables. */
  const refusing = (tables: readonly string[]): Exec => {
    const listed = JSON.stringify({ nftables: tables.map((name) => ({ table: { family: "ip", name, handle: 1 } })) });
    return {
      run: () => Promise.resolve({ code: 0, stdout: listed, stderr: "" }),
      open: () => ({ pid: 1, close: () => undefined, finish: () => Promise.resolve({ code: 1, stdout: "", stderr: refused }) }),
    };
  };
  const dropIn = (tables: readonly string[]): Promise<void> =>
    new NftSession({ exec: refusing(tables), own: new OwnCommits() }, "nft").dropTable("ip", "turnout", signal);

  it("is none where the kernel lacks the family", async () => {
    await expect(dropIn([])).resolves.toBeUndefined();
  });

  it("that is there and stays is an error", async () => {
    await expect(dropIn(["turnout"])).rejects.toMatchObject({ code: "host_unsupported" });
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
    const host = { exec, own: new OwnCommits(), kernel: { netlink: { prepareNftWrite }, clock: { nowMs: () => 0 } } };
    return { session: new NftSession(host, "nft"), nft, kernel, started: () => started, closed: () => closed };
  };

  it("of elements alone goes to the kernel, and with anything else through nft", async () => {
    const { session, nft, kernel } = sessionOf();
    await session.commit([elements], signal);
    expect([nft, kernel]).toEqual([[], [elements]]);
    await session.commit(["flush chain ip t c", elements], signal);
    expect([nft, kernel.length]).toEqual([["flush chain ip t c\nadd element ip t s { 10.0.0.1 }\n"], 1]);
    session.close();
  });

  it("finds an nft that was started for it, and starts that of the next one, which ends when there is none for a while", async () => {
    vi.useFakeTimers();
    try {
      const { session, nft, started, closed } = sessionOf();
      session.start();
      expect(started()).toBe(1);
      await session.commit(["add table ip t"], signal);
      await vi.advanceTimersByTimeAsync(7_000);
      await session.commit(["add chain ip t c"], signal);
      await vi.advanceTimersByTimeAsync(7_000);
      expect([nft.length, started(), closed()]).toEqual([2, 3, 0]);
      await vi.advanceTimersByTimeAsync(7_000);
      expect(closed()).toBe(1);
      await session.commit(["add chain ip t d"], signal);
      expect([nft.length, started()]).toEqual([3, 4]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("that drops a table starts no nft of a next one", async () => {
    vi.useFakeTimers();
    try {
      const { session, nft, started } = sessionOf();
      await session.dropTable("ip", "turnout", signal);
      await vi.advanceTimersByTimeAsync(1_000);
      expect([nft.length, started()]).toEqual([1, 1]);
    } finally {
      vi.useRealTimers();
    }
  });
});

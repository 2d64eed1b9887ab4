import { describe, expect, test } from "vitest";
import { ToyLog } from "../../test-support/toys.ts";
import type { HostFiles } from "./host-files.ts";
import { demandHost, setHost, setMissing } from "./set-host.ts";

const CLOSE_WAIT = { name: "close_wait", path: "/close_wait", value: 3600 };
const MAX = { name: "max", path: "/max", value: 9 };

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code, syscall: "open" });
}

/** Files in memory; those of `refused` can't be written, for that reason. */
function toyFiles(texts: Record<string, string>, refused: Readonly<Record<string, string>> = {}): HostFiles {
  const at = (path: string): string => {
    const text = texts[path];
    if (text === undefined) throw systemError("ENOENT");
    return text;
  };
  return {
    cores: 1,
    read: at,
    write: (path, text) => {
      if (refused[path] !== undefined) throw systemError(refused[path]);
      texts[path] = text;
    },
    open: at,
  };
}

test("what differs is written, and told in one line", () => {
  const [texts, log] = [{ "/close_wait": "60", "/max": "9" }, new ToyLog()];
  expect(setHost([CLOSE_WAIT, MAX], toyFiles(texts), log)).toEqual([]);
  expect(texts).toEqual({ "/close_wait": "3600", "/max": "9" });
  expect(log.lines).toEqual(["info host settings were changed set=close_wait 60 -> 3600"]);
  setHost([CLOSE_WAIT, MAX], toyFiles(texts), log);
  expect(log.lines).toHaveLength(1);
});

test("what can't be written is told in a line for each reason, and keeps nothing else from being set", () => {
  const [texts, log] = [{ "/close_wait": "60", "/max": "1", "/other": "1" }, new ToyLog()];
  const other = { name: "other", path: "/other", value: 2 };
  setHost([MAX, other, CLOSE_WAIT], toyFiles(texts, { "/max": "EROFS", "/other": "EROFS" }), log);
  expect(texts["/close_wait"]).toBe("3600");
  expect(log.lines.filter((line) => line.startsWith("warn"))).toEqual([
    expect.stringMatching(
      /^warn host settings are left as they are wanted=max=9, other=2 error=EROFS hint=.*read-only.*--init-only/,
    ) as unknown,
  ]);
});

test("what isn't there may come later: it is tried again, and told when it is still missing", () => {
  const [texts, log]: [Record<string, string>, ToyLog] = [{}, new ToyLog()];
  const missing = setHost([CLOSE_WAIT, MAX], toyFiles(texts), log);
  expect([missing, log.lines]).toEqual([[CLOSE_WAIT, MAX], []]);
  texts["/max"] = "1";
  setMissing(missing, toyFiles(texts), log);
  expect(texts["/max"]).toBe("9");
  expect(log.lines).toEqual([
    "info host settings were changed set=max 1 -> 9",
    expect.stringMatching(/^warn host settings are left as they are wanted=close_wait=3600 error=ENOENT hint=.*nf_conntrack/) as unknown,
  ]);
});

describe("what has to be set", () => {
  const nothing = (): Promise<void> => Promise.resolve();

  test("is set, also what comes with conntrack", async () => {
    const [texts, log]: [Record<string, string>, ToyLog] = [{ "/close_wait": "60" }, new ToyLog()];
    await demandHost([CLOSE_WAIT, MAX], toyFiles(texts), log, () => {
      texts["/max"] = "1";
      return nothing();
    });
    expect(texts).toEqual({ "/close_wait": "3600", "/max": "9" });
    expect(log.lines.filter((line) => line.startsWith("warn"))).toEqual([]);
  });

  test.each([
    ["conntrack can't be loaded", {}, /^\[host_unsupported\] host settings can't be set: max=9 \(ENOENT\): .*nf_conntrack is not loaded/],
    ["files are read-only", { "/max": "EROFS" }, /^\[permission_denied\] host settings can't be set: max=9 \(EROFS\): .*read-only/],
    [
      "a right is missing",
      { "/max": "EACCES" },
      /^\[permission_denied\] host settings can't be set: max=9 \(EACCES\): .*network namespace of the host/,
    ],
  ])("is an error, after all else was set: %s", async (_name, refused, message) => {
    const texts: Record<string, string> = { "/close_wait": "60", ...(Object.keys(refused).length > 0 ? { "/max": "1" } : {}) };
    await expect(demandHost([MAX, CLOSE_WAIT], toyFiles(texts, refused), new ToyLog(), nothing)).rejects.toThrow(message);
    expect(texts["/close_wait"]).toBe("3600");
  });
});

test("a defect is none of the host's", () => {
  const broken = { ...toyFiles({}), read: (): string => JSON.parse("{") as string };
  expect(() => setHost([MAX], broken, new ToyLog())).toThrow(SyntaxError);
});

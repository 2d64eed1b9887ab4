import { expect, it } from "vitest";
import { describeVm } from "./describe-vm.ts";
import type { DescribeVmOptions } from "./describe-vm.ts";
import type { VmResult } from "./run-in-vm.ts";

const GOOD: VmResult = { code: 0, stdout: "", stderr: "" };
const LAST = "ends well, with nothing else reported";

/** What becomes of each test when a guest reports these lines and ends so: its error's message, or "passed". */
async function outcomes(names: readonly string[], lines: readonly string[], end: VmResult | Error): Promise<Record<string, string>> {
  const tests = new Map<string, () => Promise<void>>();
  const run: DescribeVmOptions["run"] = async ({ onReport }) => {
    for (const line of lines) onReport?.(line);
    if (end instanceof Error) throw end;
    return end;
  };
  describeVm({ command: ["true"], names, run, it: (name, test) => tests.set(name, test) });
  const reported: Record<string, string> = {};
  for (const [name, test] of tests) {
    reported[name] = await test().then(
      () => "passed",
      (error: unknown) => (error as Error).message,
    );
  }
  return reported;
}

it("gives each check the test of its name", async () => {
  const failure = JSON.stringify({ name: "b", error: { message: "no route", stack: "Error: no route\n    at there" } });
  expect(await outcomes(["a", "b"], [failure, '{"name":"a"}'], GOOD)).toEqual({ a: "passed", b: "no route", [LAST]: "passed" });
});

it("fails a check that is not reported, with how the program ended", async () => {
  const end = { code: 1, stdout: "", stderr: "TypeError: x\n" };
  const words = "the program in the guest ended with exit code 1: TypeError: x";
  expect(await outcomes(["a", "b"], ['{"name":"a"}'], end)).toEqual({ a: "passed", b: `b was never reported: ${words}`, [LAST]: words });
});

it("fails what is left with the guest's own error when that breaks", async () => {
  const broken = new Error("[timed_out] running a program in a guest");
  expect(await outcomes(["a", "b"], ['{"name":"a"}'], broken)).toEqual({ a: "passed", b: broken.message, [LAST]: broken.message });
});

it.each(['{"name":"nobody"}', '{"name":"a"}', "no JSON", "[]", "null"])(
  "fails at the end for a report that nobody waits for: %s",
  async (line) => {
    const reported = await outcomes(["a"], ['{"name":"a"}', line], GOOD);
    expect(reported).toEqual({ a: "passed", [LAST]: `reported, but no check or not for the first time: ${line}` });
  },
);

it("ends a test when its check is reported, not when the guest ends, and starts nothing before the first test", async () => {
  const tests: (() => Promise<void>)[] = [];
  let starts = 0;
  const run: DescribeVmOptions["run"] = ({ onReport }) => {
    starts += 1;
    onReport?.('{"name":"a"}');
    return new Promise(() => undefined);
  };
  describeVm({ command: ["true"], names: ["a", "b"], run, it: (_, test) => tests.push(test) });
  expect(starts).toBe(0);
  await tests[0]?.();
  await tests[0]?.();
  expect(starts).toBe(1);
});

it("takes no name twice", () => {
  expect(() => describeVm({ command: ["true"], names: ["a", "b", "a"], it: () => undefined })).toThrow("a check has a name of its own: a");
});

import { expect, it } from "vitest";
import { focusOn, readReport, withSecondRun } from "./report.ts";

const spec = (fields: object): object => ({
  ContainerHierarchyTexts: ["[sig-network] Services"],
  LeafNodeType: "It",
  LeafNodeText: "works",
  ...fields,
});
const read = (...specs: readonly object[]): unknown => readReport(JSON.stringify([{ SpecReports: specs }]));

it.each([
  ["a test that passed", spec({ State: "passed" }), [{ name: "[sig-network] Services works", state: "passed" }]],
  [
    "a failure, in one line",
    spec({ State: "failed", Failure: { Message: "Expected\n    <int>: 1\nto equal" } }),
    [{ name: "[sig-network] Services works", state: "failed", why: "Expected <int>: 1 to equal" }],
  ],
  [
    "a test that ran out of time",
    spec({ State: "timedout" }),
    [{ name: "[sig-network] Services works", state: "failed", why: "timedout" }],
  ],
  [
    "a failed command, without the machine's paths",
    spec({ State: "failed", Failure: { Message: "error running /a/b/kubectl --kubeconfig=/c/admin.conf exec x" } }),
    [{ name: "[sig-network] Services works", state: "failed", why: "error running kubectl exec x" }],
  ],
  [
    "a panic",
    spec({ State: "panicked", Failure: { Message: "nil" } }),
    [{ name: "[sig-network] Services works", state: "failed", why: "nil" }],
  ],
  [
    "a test that left itself out",
    spec({ State: "skipped", Failure: { Message: "needs two zones" } }),
    [{ name: "[sig-network] Services works", state: "skipped", why: "needs two zones" }],
  ],
  ["a test that the filters left out", spec({ State: "skipped", Failure: { Message: "" } }), []],
  [
    "preparation that passed",
    spec({ LeafNodeType: "SynchronizedBeforeSuite", LeafNodeText: "", ContainerHierarchyTexts: null, State: "passed" }),
    [],
  ],
  [
    "preparation that failed",
    spec({
      LeafNodeType: "SynchronizedBeforeSuite",
      LeafNodeText: "",
      ContainerHierarchyTexts: null,
      State: "failed",
      Failure: { Message: "no nodes" },
    }),
    [{ name: "SynchronizedBeforeSuite", state: "failed", why: "no nodes" }],
  ],
])("reads %s", (_what, report, expected) => {
  expect(read(report)).toEqual(expected);
});

it("sorts by name, over all suites of the report", () => {
  const [a, b] = [spec({ LeafNodeText: "a", State: "passed" }), spec({ LeafNodeText: "b", State: "passed" })];
  const results = readReport(JSON.stringify([{ SpecReports: [b] }, { SpecReports: null }, { SpecReports: [a] }]));
  expect(results.map(({ name }) => name)).toEqual(["[sig-network] Services a", "[sig-network] Services b"]);
});

it("what failed first and passed then has passed, and keeps how it failed; all else stays", () => {
  const first = [
    { name: "a", state: "passed" },
    { name: "b", state: "failed", why: "slow" },
    { name: "c", state: "failed", why: "broken" },
    { name: "d", state: "skipped", why: "no zones" },
  ] as const;
  const second = [
    { name: "a", state: "failed", why: "never asked" },
    { name: "b", state: "passed" },
    { name: "c", state: "failed", why: "still broken" },
  ] as const;
  expect(withSecondRun(first, second)).toEqual([first[0], { name: "b", state: "passed", failedFirst: "slow" }, first[2], first[3]]);
});

it("focuses on names as they are written", () => {
  const focus = focusOn([
    { name: "[sig-network] a (b): c.d", state: "failed" },
    { name: "e", state: "failed" },
  ]);
  expect(focus).toBe("\\[sig-network\\] a \\(b\\): c\\.d|e");
  expect("[sig-network] a (b): c.d [LinuxOnly]").toMatch(new RegExp(focus));
});

import { expect, it } from "vitest";
import type { TestResult } from "./report.ts";
import { controlOf, defectsAgainst, pageWith, readPage, readRuns, tableOf } from "./results.ts";
import type { SuiteRun } from "./results.ts";

const run = (backend: string, states: Readonly<Record<string, TestResult["state"]>>, more: Partial<SuiteRun> = {}): SuiteRun => ({
  kubernetes: "1.36.3",
  backend,
  families: "IPv4, IPv6",
  where: "namespaces",
  date: "2026-11-25",
  tests: Object.entries(states).map(([name, state]) => ({ name, state, ...(state === "passed" ? {} : { why: `${name} | is so` }) })),
  ...more,
});
const NFT = run("nft", { a: "passed", b: "failed", c: "failed", d: "skipped" });
const CONTROL = run("kube-proxy-nftables", { a: "passed", b: "passed", c: "failed", d: "skipped" });

it("a defect is what failed and passed with the control", () => {
  expect(defectsAgainst(NFT, CONTROL).map(({ name }) => name)).toEqual(["b"]);
  expect(defectsAgainst(NFT, run("kube-proxy-nftables", { a: "passed" }))).toEqual([]);
});

it("the control is kube-proxy of the same version, families and kind of cluster, in the backend's own mode where there is one", () => {
  const iptables = run("kube-proxy-iptables", { a: "passed" });
  const others = [run("kube-proxy-nftables", {}, { kubernetes: "1.35.0" }), run("kube-proxy-nftables", {}, { where: "kind" })];
  expect(controlOf(NFT, [...others, iptables, CONTROL])).toBe(CONTROL);
  expect(controlOf(run("iptables", {}), [CONTROL, iptables])).toBe(iptables);
  expect(controlOf(run("ebpf", {}), [iptables])).toBe(iptables);
  expect(controlOf(NFT, others)).toBeUndefined();
});

it("the table has a row for each run, and says why tests failed", () => {
  expect(tableOf([CONTROL, NFT]).split("\n").slice(2)).toEqual([
    "| 1.36.3 | `kube-proxy-nftables` | IPv4, IPv6 | namespaces | 2 | 0 | 1 | 1 |  | 2026-11-25 |",
    "| 1.36.3 | `nft` | IPv4, IPv6 | namespaces | 1 | 0 | 2 | 1 | 1 (kube-proxy-nftables) | 2026-11-25 |",
    "",
    "What failed, and why:",
    "- 1.36.3, `kube-proxy-nftables`, IPv4, IPv6: c: c \\| is so",
    "- 1.36.3, `nft`, IPv4, IPv6: b: b \\| is so",
    "- 1.36.3, `nft`, IPv4, IPv6: c: c \\| is so",
    "",
  ]);
});

it("a page gets another table between its marks, and must have them", () => {
  const page = "before\n<!-- written by npm run e2e:cluster -->\nold\n<!-- end of what is written -->\nafter\n";
  expect(pageWith(page, "new\n")).toBe(page.replace("old", "new"));
  expect(() => pageWith("nothing", "new")).toThrow("lacks the lines");
});

it("docs/conformance.md says what the kept runs say", () => {
  expect(readPage()).toBe(pageWith(readPage(), tableOf(readRuns())));
});

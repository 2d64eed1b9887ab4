import type { PrintedSurvey } from "@turnout/explain";
import { expect, test } from "vitest";
import type { FoundRules } from "../../found-backend.ts";
import { backendWarnings, noneHere, noneServes, severalActive } from "./doctor-findings.ts";
import { diagnosisText } from "./doctor-report.ts";

const healthy = (
  backend: string,
): { backend: string; problems: string[]; warnings: string[]; lacks: string[]; versions: Record<string, string> } => ({
  backend,
  problems: [],
  warnings: [],
  lacks: [],
  versions: { kernel: "6.1", [backend]: "1.0" },
});
const live: FoundRules = { what: "table ip turnout", by: "turnout", backend: "nft" };

test("backends are one line each: the one in use first, then those that can run", () => {
  const long = `[host_unsupported] no such thing is here: ${"and more to read about it ".repeat(10)}`;
  const backends = [healthy("iptables"), { ...healthy("ebpf"), problems: [long, "[tool_missing] another"] }, healthy("nft")];
  const text = diagnosisText({ version: "1", host: "h", findings: [], backends, proxies: [live] });
  const lines = text.split("\n").filter((line) => /nft|iptables|ebpf/.test(line));
  expect(lines.map((line) => line.slice(0, 45).trimEnd())).toEqual([
    "backends  nft         in use: nft 1.0",
    "          iptables    can run: iptables 1.0",
    "          ebpf        can't run: no such thin",
  ]);
  expect(lines[2]).toMatch(/… \(and 1 more\)$/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(150);
});

test("what several backends warn of is one finding", () => {
  const warned = (backend: string): ReturnType<typeof healthy> => ({ ...healthy(backend), warnings: ["[tool_failed] nft crashes"] });
  expect(backendWarnings([warned("nft"), healthy("iptables"), warned("ebpf")])).toEqual([
    expect.objectContaining({ severity: "risk", what: "nft crashes", because: expect.stringContaining("nft, ebpf") as unknown }),
  ]);
});

test("a backend of which a process runs is in use, and rules of another one are a fault", () => {
  const backends = [healthy("nft"), healthy("userspace")];
  const text = diagnosisText({ version: "1", host: "h", findings: [], backends, proxies: [live], serving: "userspace" });
  expect(text.split("\n").filter((line) => /nft|userspace/.test(line))).toEqual([
    "backends  userspace   in use: userspace 1.0",
    "          nft         has rules in force: nft 1.0",
  ]);
  const running = { backend: "userspace", residence: "process" } as const;
  expect(severalActive([live], running)).toMatchObject([
    { severity: "fault", because: "table ip turnout (nft), the process that runs (userspace)" },
  ]);
  expect(severalActive([live], { backend: "nft", residence: "kernel" })).toEqual([]);
  expect(severalActive([], running)).toEqual([]);
});

test("rules of Turnout without a Turnout are a fault, where processes can be seen", () => {
  const survey = { writers: [], seesProcesses: true };
  const running = (name: string, isRunning: boolean) => [{ name, kind: "proxy" as const, traces: [], isRunning, pids: [], stopped: [] }];
  expect(noneServes([live], survey)).toMatchObject([{ severity: "fault", because: "table ip turnout" }]);
  expect(noneServes([live], { ...survey, writers: running("Turnout", false) })).toHaveLength(1);
  expect(noneServes([live], { ...survey, seesProcesses: false })).toMatchObject([{ severity: "risk" }]);
  expect(noneServes([live], { ...survey, writers: running("Turnout", true) })).toEqual([]);
  expect(noneServes([live], { ...survey, writers: running("kube-proxy", true) })).toEqual([]);
  expect(noneServes([{ ...live, isLive: false }], survey)).toEqual([]);
  expect(noneServes([{ ...live, by: "kube-proxy" }], survey)).toEqual([]);
});

test("what is left of a Turnout without rules and process is a fault, where processes can be seen", () => {
  const left = { name: "Turnout", kind: "proxy" as const, traces: ["table inet turnout-ebpf"], isRunning: false, pids: [], stopped: [] };
  const survey = { writers: [left], seesProcesses: true, unseen: [] };
  expect(noneHere([], survey)).toMatchObject([
    { id: "turnout-gone", severity: "fault", because: "all that is left of it is table inet turnout-ebpf; no process of it" },
  ]);
  expect(noneHere([live], survey)).toEqual([]);
  expect(noneHere([], { ...survey, seesProcesses: false })).toEqual([]);
  expect(noneHere([], { ...survey, writers: [{ ...left, isRunning: true }] })).toEqual([]);
});

test("a host without a proxy is told so, where it would have been seen", () => {
  const survey = { writers: [], seesProcesses: true, unseen: [] };
  expect(noneHere([], survey)).toMatchObject([{ severity: "note" }]);
  expect(noneHere([live], survey)).toEqual([]);
  expect(noneHere([], { ...survey, seesProcesses: false })).toEqual([]);
  expect(noneHere([], { ...survey, unseen: [{ what: "rules of nft and iptables", because: "" }] })).toEqual([]);
});

test("a program that is stopped is not said to run", () => {
  const turnout = {
    name: "Turnout",
    kind: "proxy",
    traces: ["process node (pid 7)"],
    isRunning: true,
    pids: [7],
    stopped: [] as number[],
  } as const;
  const linesOf = (stopped: readonly number[]): string => {
    const survey = { kernel: "6.1", isRoot: true, writers: [{ ...turnout, stopped }], unseen: [] } as unknown as PrintedSurvey;
    return diagnosisText({ version: "1", host: "h", findings: [], backends: [], proxies: [], survey });
  };
  expect(linesOf([])).toContain("rules by  Turnout (running; process node (pid 7))");
  expect(linesOf([7])).toContain("rules by  Turnout (stopped; process node (pid 7))");
});

test("nothing is called in order that was not seen", () => {
  const survey = {
    kernel: "6.1",
    isRoot: false,
    writers: [],
    unseen: [{ what: "rules of nft and iptables", because: "without root" }],
  } as unknown as PrintedSurvey;
  const text = diagnosisText({ version: "1", host: "h", findings: [], backends: [], proxies: [], survey });
  expect(text).toContain("Nothing was found, but without root rules can't be seen.");
  expect(text).not.toMatch(/Nothing is wrong|nobody else/);
});

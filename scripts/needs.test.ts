import { describe, expect, it } from "vitest";
import { compareVersions, leftOut, needs, unmetNeed } from "./needs.ts";
import type { NeedsHost } from "./needs.ts";

const host: NeedsHost = {
  isRoot: false,
  kernel: "6.1.0-18-amd64",
  versionOf: (tool) => ({ nft: "1.0.6", quiet: "" })[tool],
  canUnshare: () => false,
};

describe("unmetNeed", () => {
  const rows: readonly { need: string; answer: string | undefined }[] = [
    { need: "root", answer: "root (not root)" },
    { need: "netns", answer: "netns (unshare -n is refused)" },
    { need: "nft", answer: undefined },
    { need: "nft>=1.0.6", answer: undefined },
    { need: "nft>=1.0.10", answer: "nft>=1.0.10 (found 1.0.6)" },
    { need: "quiet", answer: undefined },
    { need: "quiet>=1", answer: "quiet>=1 (found no version)" },
    { need: "absent", answer: "absent (not installed)" },
    { need: "absent>=2", answer: "absent>=2 (not installed)" },
    { need: "kernel>=6.1", answer: undefined },
    { need: "kernel>=6.2", answer: "kernel>=6.2 (found 6.1.0-18-amd64)" },
  ];
  it.each(rows)("$need: $answer", ({ need, answer }) => {
    expect(unmetNeed(need, host)).toBe(answer);
  });

  it("finds nothing unmet where everything is there", () => {
    const able: NeedsHost = { ...host, isRoot: true, canUnshare: () => true };
    expect(["root", "netns"].map((need) => unmetNeed(need, able))).toEqual([undefined, undefined]);
  });

  it.each(["", "nft>1", "nft>=", "Root", "nft >=1"])("refuses %j, which is no need", (need) => {
    expect(() => unmetNeed(need, host)).toThrow("is no need");
  });
});

it("compares versions by number, a missing part as 0", () => {
  expect(Math.sign(compareVersions("1.0.9", "1.0.10"))).toBe(-1);
  expect(Math.sign(compareVersions("1.1", "1.0.10"))).toBe(1);
  expect(compareVersions("1", "1.0.0")).toBe(0);
});

it("turns an unmet need into a skip that says why, and a met one into nothing", () => {
  expect(needs("turnout-no-such-tool>=1")).toEqual({ skip: true, meta: { unmetNeeds: ["turnout-no-such-tool>=1 (not installed)"] } });
  expect(needs("sh")).toEqual({ skip: false, meta: {} });
});

it("leaves a test out for a reason of its own under a name that can be allowed", () => {
  expect(leftOut("fake-host", "three hours are long")).toEqual({ skip: true, meta: { unmetNeeds: ["fake-host (three hours are long)"] } });
});

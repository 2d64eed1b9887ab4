import { describe, expect, it } from "vitest";
import { compareVersions, createNeedsHost, leftOut, needs, unmetNeed } from "./needs.ts";
import type { NeedsHost } from "./needs.ts";

const host: NeedsHost = {
  isRoot: false,
  kernel: "6.1.0-18-amd64",
  machine: "x64",
  versionOf: (tool) => ({ nft: "1.0.6", quiet: "" })[tool],
  canUnshare: () => false,
  hasFile: () => false,
  hasMount: () => false,
  canInstall: () => false,
};

describe("unmetNeed", () => {
  const rows: readonly { need: string; answer: string | undefined }[] = [
    { need: "root", answer: "root (not root)" },
    { need: "netns", answer: "netns (unshare -n is refused)" },
    { need: "cgroup2", answer: "cgroup2 (not mounted; run: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified)" },
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
    const yes = (): boolean => true;
    const able: NeedsHost = { ...host, isRoot: true, canUnshare: yes, hasFile: yes, hasMount: yes, versionOf: () => "1.0" };
    const met = ["root", "netns", "uml", "bpf", "wine", "cgroup2"].map((need) => unmetNeed(need, able));
    expect(met).toEqual(met.map(() => undefined));
  });

  it.each(["clang", "llvm-strip", "header"])("misses bpf without %s", (missing) => {
    const lacking: NeedsHost = {
      ...host,
      versionOf: (tool) => (tool === missing ? undefined : "1.0"),
      hasFile: () => missing !== "header",
    };
    const install = "apt-get install -y --no-install-recommends clang llvm libbpf-dev";
    expect(unmetNeed("bpf", lacking)).toBe(`bpf (not installed; run: ${install})`);
  });

  it.each(["wine64", "x86_64-w64-mingw32-gcc"])("misses wine without %s, and another machine where it can't be", (missing) => {
    const lacking: NeedsHost = {
      ...host,
      versionOf: (tool) => (tool === missing ? undefined : "1.0"),
      hasFile: () => missing !== "wine64",
    };
    const install = "apt-get install -y --no-install-recommends wine64 gcc-mingw-w64-x86-64";
    expect(unmetNeed("wine", lacking)).toBe(`wine (not installed; run: ${install})`);
    expect(unmetNeed("wine", { ...lacking, machine: "arm64" })).toBe("x64 (Wine runs Node for Windows on x64 alone, this is arm64)");
  });

  it.each(["linux.uml", "modprobe"])("misses uml without %s, as a need of its own where no package can be had", (missing) => {
    const install = "apt-get install -y --no-install-recommends user-mode-linux kmod";
    const lacking: NeedsHost = { ...host, versionOf: (tool) => (tool === missing ? undefined : "1.0") };
    expect(unmetNeed("uml", { ...lacking, canInstall: (name) => name === "user-mode-linux" })).toBe(`uml (not installed; run: ${install})`);
    expect(unmetNeed("uml", lacking)).toBe(`user-mode-linux (no such package here; where there is one: ${install})`);
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

it("asks apt-cache, if there is one, whether there is a package", () => {
  const machine = createNeedsHost();
  const isDebian = machine.versionOf("apt-cache") !== undefined;
  expect([machine.canInstall("dpkg"), machine.canInstall("turnout-no-such-package")]).toEqual([isDebian, false]);
});

it("looks for files and mounts", () => {
  const machine = createNeedsHost();
  expect([
    machine.hasFile("/proc/self"),
    machine.hasFile("/turnout-none"),
    machine.hasMount("proc"),
    machine.hasMount("turnout-none"),
  ]).toEqual([true, false, true, false]);
});

it("turns an unmet need into a skip that says why, and a met one into nothing", () => {
  expect(needs("turnout-no-such-tool>=1")).toEqual({ skip: true, meta: { unmetNeeds: ["turnout-no-such-tool>=1 (not installed)"] } });
  expect(needs("sh")).toEqual({ skip: false, meta: {} });
});

it("leaves a test out for a reason of its own under a name that can be allowed", () => {
  expect(leftOut("fake-host", "three hours are long")).toEqual({ skip: true, meta: { unmetNeeds: ["fake-host (three hours are long)"] } });
});

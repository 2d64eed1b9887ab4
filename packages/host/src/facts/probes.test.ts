import { ProxyError } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { hasCapability, isAtLeast, isRootStatus, nftVersion, parseKernelVersion, parseNftVersion, probeHost } from "./probes.ts";
import { createFakeExec } from "../testing/index.ts";

const signal = new AbortController().signal;

function status(uid: number, caps: string): string {
  return `Name:\tnode\nUid:\t1000\t${uid}\t${uid}\t${uid}\nCapInh:\t0000000000000000\nCapPrm:\t0000000000001000\nCapEff:\t${caps}\n`;
}

function files(texts: Readonly<Record<string, string>>): (path: string) => Promise<string> {
  return async (path) => {
    const text = texts[path];
    if (text === undefined) throw Object.assign(new Error(path), { code: "ENOENT" });
    return text;
  };
}

describe("versions", () => {
  it.each([
    ["6.18.44-fc-v657\n", [6, 18, 44]],
    ["5.10", [5, 10, 0]],
    ["6.1.0+", [6, 1, 0]],
    ["", undefined],
    ["linux", undefined],
  ])("kernel %j", (text, numbers) => {
    const version = parseKernelVersion(text);
    expect(version && [version.major, version.minor, version.patch]).toEqual(numbers);
  });

  it.each([
    ["nftables v1.0.6 (Lester Gooch #5)\n", "1.0.6"],
    ["nftables v1.1 (x)", "1.1"],
    ["Error: nftables v1.0.6", undefined],
  ])("nft %j", (text, version) => expect(parseNftVersion(text)?.text).toBe(version));

  it.each([
    ["5.8", true],
    ["6.1", true],
    ["6.1.9", true],
    ["6.1.10", true],
    ["6.1.11", false],
    ["6.2", false],
    ["7.0", false],
  ])("6.1.10 is at least %s: %s", (wanted, expected) => {
    expect(isAtLeast({ major: 6, minor: 1, patch: 10, text: "6.1.10" }, wanted)).toBe(expected);
  });
});

it("refuses to compare with half a version", () => {
  expect(() => isAtLeast({ major: 6, minor: 1, patch: 10, text: "6.1.10" }, "6")).toThrow("[invalid_object]");
});

describe("rights", () => {
  it("reads the effective capabilities, not the permitted ones", () => {
    expect(hasCapability(status(0, "0000000000001000"), 12n)).toBe(true);
    expect(hasCapability(status(0, "0000000000000fff"), 12n)).toBe(false);
    expect(hasCapability(status(0, "000001fffeffffff"), 24n)).toBe(false);
    expect(hasCapability("", 12n)).toBe(false);
  });

  it("reads the effective user", () => {
    expect(isRootStatus(status(0, "0"))).toBe(true);
    expect(isRootStatus(status(1000, "0"))).toBe(false);
  });
});

describe("probeHost", () => {
  const texts = { "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n", "/proc/self/status": status(1000, "0000000000001000") };

  it("puts a host together from its files", async () => {
    expect(await probeHost(files({ ...texts, "/proc/net/if_inet6": "" }))).toEqual({
      kernel: { major: 6, minor: 1, patch: 0, text: "6.1.0-18-amd64" },
      isRoot: false,
      hasNetAdmin: true,
      hasIPv6: true,
    });
    expect(await probeHost(files(texts))).toMatchObject({ hasIPv6: false });
  });

  it("refuses a host without Linux's /proc", async () => {
    await expect(probeHost(files({}))).rejects.toMatchObject({ code: "host_unsupported" });
  });

  it("agrees with this machine", async () => {
    const probe = await probeHost();
    expect(probe.isRoot).toBe(process.geteuid?.() === 0);
    expect(probe.kernel.text.length).toBeGreaterThan(0);
  });
});

describe("nftVersion", () => {
  it("asks nft", async () => {
    const exec = createFakeExec([{ run: ["nft", "--version"], result: { stdout: "nftables v1.0.6 (x)\n" } }]);
    expect(await nftVersion(exec, signal)).toEqual({ major: 1, minor: 0, patch: 6, text: "1.0.6" });
    exec.done();
  });

  it("is undefined where there is none", async () => {
    const exec = createFakeExec([{ run: ["nft", "--version"], error: new ProxyError("tool_missing", "no nft") }]);
    expect(await nftVersion(exec, signal)).toBeUndefined();
  });

  it("does not hide an nft that fails", async () => {
    const exec = createFakeExec([{ run: ["nft", "--version"], result: { code: 127, stderr: "libnftables.so.1: not found" } }]);
    await expect(nftVersion(exec, signal)).rejects.toMatchObject({ code: "tool_failed" });
  });
});

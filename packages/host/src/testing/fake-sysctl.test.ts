import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createSysctl, sysctlPath } from "./sysctl.ts";
import { createFakeSysctl } from "../testing/index.ts";

const root = mkdtempSync(join(tmpdir(), "turnout-sysctl-"));
mkdirSync(join(root, "net/ipv4"), { recursive: true });
writeFileSync(join(root, "net/ipv4/ip_forward"), "0\n");
afterAll(() => rmSync(root, { recursive: true }));

describe("sysctlPath", () => {
  it.each([
    ["net.ipv4.ip_forward", "net/ipv4/ip_forward"],
    ["net/ipv4/ip_forward", "net/ipv4/ip_forward"],
    ["net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"],
    ["net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"],
  ])("%s", (name, path) => expect(sysctlPath(name)).toBe(path));

  it.each(["", "net", "/net/ipv4", "net//ipv4", "net..ipv4", "net/../../etc/passwd", "net/./x", "net.ipv4.", "net/a\0b"])(
    "refuses %j",
    (name) => expect(() => sysctlPath(name)).toThrow("[invalid_object]"),
  );
});

const kinds = [
  ["real", createSysctl(root)],
  ["fake", createFakeSysctl({ "net.ipv4.ip_forward": "0" })],
] as const;

describe.each(kinds)("a %s sysctl", (_, sysctl) => {
  it("reads and writes by either spelling", async () => {
    expect(await sysctl.read("net.ipv4.ip_forward")).toBe("0");
    await sysctl.write("net/ipv4/ip_forward", 1);
    expect(await sysctl.read("net.ipv4.ip_forward")).toBe("1");
  });

  it("makes no parameter that isn't there", async () => {
    await expect(sysctl.write("net.ipv4.nothing", 1)).rejects.toMatchObject({ code: "not_found" });
    await expect(sysctl.read("net.ipv4.nothing")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("the kernel's own", () => {
  it("reads a parameter of this machine", async () => {
    expect(await createSysctl().read("kernel.ostype")).toBe("Linux");
  });

  it("maps a refused write", async () => {
    await expect(createSysctl().write("kernel.ostype", "Plan 9")).rejects.toMatchObject({ code: "permission_denied" });
  });
});

import { describe, expect, it } from "vitest";
import { createFakeSysctl, sysctlPath } from "./fake-sysctl.ts";

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

describe("a fake sysctl", () => {
  const sysctl = createFakeSysctl({ "net.ipv4.ip_forward": "0" });

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

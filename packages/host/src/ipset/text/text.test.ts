import { parseCIDR } from "@turnout/core";
import { describe, expect, it } from "vitest";
import {
  addLine,
  createLine,
  deleteLine,
  destroyLine,
  netEntries,
  optionsOf,
  portEntry,
  readSaved,
  SET_ENTRIES_MAX,
  swapLine,
} from "./index.ts";

describe("lines of ipset restore", () => {
  it("say what a set is, and how many entries it has room for", () => {
    expect(createLine("KUBE-CLUSTER-IP", { type: "hash:ip,port", family: "IPv4" })).toBe(
      "create KUBE-CLUSTER-IP hash:ip,port family inet maxelem 65536",
    );
    expect(createLine("A", { type: "hash:ip,port", family: "IPv4" }, SET_ENTRIES_MAX)).toBe(
      "create A hash:ip,port family inet maxelem 1048576",
    );
    expect(createLine("KUBE-6-CLUSTER-IP", { type: "hash:ip,port", family: "IPv6" })).toContain(" family inet6 ");
    expect(createLine("KUBE-NODE-PORT-TCP", { type: "bitmap:port", family: "IPv6" })).toBe(
      "create KUBE-NODE-PORT-TCP bitmap:port range 0-65535",
    );
    expect([addLine("A", "1.1.1.1"), deleteLine("A", "1.1.1.1"), destroyLine("A"), swapLine("A", "B")]).toEqual([
      "add A 1.1.1.1",
      "del A 1.1.1.1",
      "destroy A",
      "swap A B",
    ]);
  });

  it("spell entries as ipset prints them", () => {
    expect(portEntry("fd00::1", "SCTP", 80)).toBe("fd00::1,sctp:80");
  });

  it.each([
    ["10.0.0.0/8", ["10.0.0.0/8"]],
    ["10.0.0.7/32", ["10.0.0.7"]],
    ["fd00::5/128", ["fd00::5"]],
    ["fd00::/64", ["fd00::/64"]],
    ["0.0.0.0/0", ["0.0.0.0/1", "128.0.0.0/1"]],
    ["::/0", ["::/1", "8000::/1"]],
  ])("a network: %s", (text, entries) => {
    const cidr = parseCIDR(text);
    expect(cidr && netEntries(cidr)).toEqual(entries);
  });
});

/** Printed by ipset 7.17 on Linux 6.1.176 and 6.18. */
const SAVED = `create A hash:ip,port family inet hashsize 1024 maxelem 100 counters comment bucketsize 12 initval 0x392838b9
add A 10.0.0.1,tcp:80 packets 0 bytes 0
add A 10.96.0.10,tcp:80 packets 0 bytes 0 comment "add A 9.9.9.9,tcp:9"
create N6 hash:ip,port,net family inet6 hashsize 8192 maxelem 1048576 bucketsize 12 initval 0x3bab91b8
add N6 fd00::1,tcp:80,fd00::102:304/127
add N6 fd00::1,tcp:80,::1.2.3.4
add N6 ::ffff:1.2.3.4,tcp:80,8000::/1
create D bitmap:port range 0-65535
add D 30080
create Z3 hash:ip family inet hashsize 1024 maxelem 65536 netmask 24 timeout 100 counters comment skbinfo bucketsize 12 initval 0xc3e5e830
add Z3 1.2.3.0 timeout 98 packets 5 bytes 6 comment "x y" skbmark 0x1/0xff
create OLD hash:ip family inet hashsize 1024 maxelem 65536
`;

describe("what ipset save printed", () => {
  const sets = readSaved(SAVED);

  it("is sets with canonical entries, whatever else entries have", () => {
    expect(sets.get("A")).toEqual({
      type: "hash:ip,port",
      options: "family inet maxelem 100 counters comment",
      entries: ["10.0.0.1,tcp:80", "10.96.0.10,tcp:80"],
    });
    expect(sets.get("N6")?.entries).toEqual([
      "fd00::1,tcp:80,fd00::102:304/127",
      "fd00::1,tcp:80,::102:304",
      "::ffff:1.2.3.4,tcp:80,8000::/1",
    ]);
    expect(sets.get("Z3")).toMatchObject({ options: "family inet maxelem 65536 netmask 24 timeout 100 counters comment skbinfo" });
    expect([...sets.keys()]).toEqual(["A", "N6", "D", "Z3", "OLD"]);
  });

  it("tells sets like ours from others, however large their tables are", () => {
    expect(sets.get("N6")?.options).toBe(optionsOf({ type: "hash:ip,port,net", family: "IPv6" }, SET_ENTRIES_MAX));
    expect(sets.get("D")?.options).toBe(optionsOf({ type: "bitmap:port", family: "IPv4" }));
    expect(sets.get("OLD")?.options).toBe(optionsOf({ type: "hash:ip", family: "IPv4" }));
  });
});

import { spawnSync } from "node:child_process";
import { TestClock } from "@turnout/core/testing";
import { FaultSwitches } from "@turnout/conformance";
import type { Packet, Trace } from "@turnout/conformance";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { createFakeNetlink, createFakeSysctl } from "@turnout/host/testing";
import { FakeIpset } from "../ipset/fake-ipset.ts";
import { FakeIptables } from "./fake-iptables.ts";
import { heard } from "./refusal.ts";
import type { Balance } from "../host/trace-packet.ts";

const SETS = ["S hash:ip,port", "S6 hash:ip,port family inet6", "P bitmap:port range 0-65535", "T hash:ip,port,ip"];

interface FakeParts {
  readonly ipset: FakeIpset;
  readonly iptables: FakeIptables;
}

function createFake(): FakeParts {
  const faults = new FaultSwitches();
  const ipset: FakeIpset = new FakeIpset({ faults, isNamed: (name) => iptables.isSetNamed(name) });
  const host = { clock: new TestClock(0), netlink: createFakeNetlink(), sysctl: createFakeSysctl({}), faults, sets: ipset };
  const iptables: FakeIptables = new FakeIptables(host, { hasKubelet: false });
  ipset.run("restore", SETS.map((set) => `create ${set}\n`).join(""));
  return { ipset, iptables };
}

/** What is heard and what is saved of a rule. */
function said(code: number, stderr: string, saved: string): string {
  const rules = saved.split("\n").filter((line) => line.startsWith("-A INPUT") && !line.includes("FOREIGN"));
  return `${heard({ code, stderr })} ${rules.join()}`.trim();
}

async function fakeSays(iptables: FakeIptables, tool: string, line: string): Promise<string> {
  await iptables.run(`${tool} -F INPUT`);
  const { code, stderr } = await iptables.run(`${tool} -A INPUT ${line} -j ACCEPT`);
  return said(code, stderr, (await iptables.run(`${tool}-save -t filter`)).stdout);
}

const LINES = [
  "-m set --match-set S dst,dst",
  "-m set --match-set S src",
  "-m set ! --match-set S src,dst",
  "-m set --match-set S src,dst,src,dst,src,src",
  "-m set --match-set S src,dst,src,dst,src,src,src",
  "-m set --match-set S foo",
  "-m set --match-set S src,DST",
  "-m set --match-set S src,",
  "-m set --match-set S",
  "-m set --match-set NOPE src",
  "-m set --match-set S6 src",
  "-m set --match-set T dst,dst,src",
  "-p tcp -m set --match-set P dst",
  "-m set --match-set P dst --match-set P dst",
  "-m set --match-set S dst,dst -m set ! --match-set P dst",
  "-m set",
  "-m set --match-set N1234567890123456789012345678901 src",
  "-m physdev ! --physdev-is-in",
  "-m physdev --physdev-is-in --physdev-is-bridged",
  "-m physdev ! --physdev-is-out --physdev-is-in ! --physdev-is-bridged",
  "-m physdev",
  "-m physdev ! --physdev-is-in --physdev-is-in",
  "-m physdev --physdev-is-in extra",
];

const TOOLS = ["iptables-nft", "iptables-legacy", "ip6tables-nft", "ip6tables-legacy"];

describe("the fake of iptables does what the real one does", needs("root", "netns", "ipset", "iptables>=1.8.9"), () => {
  it.each(TOOLS)("with sets and bridge ports, %s", async (tool) => {
    const each = LINES.map(
      (line) => `${tool} -F INPUT; ${tool} -A INPUT ${line} -j ACCEPT 2>&1; echo "@$?"; ${tool}-save -t filter; echo @@`,
    );
    const script = `exec 2>/dev/null; ${SETS.map((set) => `ipset create ${set}`).join("; ")}; ${each.join("; ")}`;
    const { stdout } = spawnSync("unshare", ["-n", "sh", "-c", script], { encoding: "utf8", env: { ...process.env, LC_ALL: "C" } });
    const real = stdout
      .split("@@\n")
      .slice(0, -1)
      .map((text) => {
        const [stderr = "", rest = ""] = text.split(/^@(?=\d)/m);
        const [code = "", ...saved] = rest.split("\n");
        return said(Number(code), stderr, saved.join("\n"));
      });
    const { iptables } = createFake();
    const fake: string[] = [];
    for (const line of LINES) fake.push(await fakeSays(iptables, tool, line));
    expect(fake.map((text, index) => [LINES[index], text])).toEqual(real.map((text, index) => [LINES[index], text]));
  });
});

/** Recorded from iptables-legacy 1.8.9 on Linux 6.1.176 in user-mode Linux, where there is xt_ipvs; `A` stands for an address. */
const IPVS_LINES: readonly (readonly [given: string, said: string])[] = [
  ["--vaddr A --vproto 6 --vport 80", "--vproto 6 --vaddr A --vport 80"],
  ["--vaddr A --vproto tcp --vport 80", "--vproto 6 --vaddr A --vport 80"],
  ["--vaddr A/16 --vproto TCP", "--vproto 6 --vaddr A/16"],
  ["--vaddr A/0", "--vaddr A/0"],
  ["--vproto 132 ! --vport 8 ! --vaddr A", "--vproto 132 ! --vaddr A ! --vport 8"],
  ["--vport 70000", "--vport 4464"],
  ["--ipvs", "--ipvs"],
  ["! --ipvs", "! --ipvs"],
  ["--ipvs --vaddr A", "--vaddr A"],
  ["--vproto all", "--vproto 0"],
  ["! --ipvs --vaddr A", "2"],
  ["--vport nope", "2"],
  ["--vproto 300", "2"],
  ["--vaddr A --vaddr A", "2"],
  ["", "2"],
];

it.each(IPVS_LINES)("connections of IPVS: %s", async (given, expected) => {
  const { iptables } = createFake();
  for (const [tool, address] of [
    ["iptables-legacy", "10.96.0.1"],
    ["ip6tables-legacy", "fd00::1"],
  ] as const) {
    const text = await fakeSays(iptables, tool, `-m ipvs ${given.replaceAll("A", address)}`.trimEnd());
    const taken = `0 -A INPUT -m ipvs ${expected.replaceAll("A", address)} -j ACCEPT`;
    expect(text).toBe(expected === "2" ? "2" : taken);
  }
});

describe("a packet", () => {
  const isLocal = (address: string): boolean => ["10.96.0.1", "192.0.2.1"].includes(address);
  const incoming: Packet = { family: "IPv4", protocol: "TCP", source: "203.0.113.9", destination: "10.96.0.1", port: 80, link: "veth1" };
  const own: Packet = { ...incoming, source: "192.0.2.1", link: "" };

  function traced(packet: Packet, answer: ReturnType<Balance>, ...rules: readonly string[]): Trace {
    const { ipset, iptables } = createFake();
    ipset.run("restore", "add S 10.96.0.1,tcp:80\nadd T 10.1.0.5,tcp:8080,203.0.113.9\n");
    for (const table of ["nat", "filter"]) {
      const lines = rules.filter((rule) => rule.startsWith(table)).map((rule) => rule.slice(table.length + 1));
      iptables.write("nft", "IPv4", `*${table}\n${lines.map((line) => `${line}\n`).join("")}COMMIT\n`);
    }
    const balance: Balance = ({ destination, port }) => (destination === "10.96.0.1" && port === 80 ? answer : undefined);
    return iptables.follow(packet, { isLocal, random: () => 0 }, false, balance);
  }

  const server = { address: "10.1.0.5", port: 8080 };
  const forwarded = { is: "forward", endpoint: "10.1.0.5:8080" };

  it("goes to a real server by way of INPUT, OUTPUT and POSTROUTING", () => {
    const masquerade = "nat -A POSTROUTING -m set --match-set T dst,dst,src -j MASQUERADE";
    expect(traced(incoming, server)).toMatchObject({ ...forwarded, masquerade: false });
    expect(traced(incoming, server, masquerade)).toMatchObject({ ...forwarded, masquerade: true });
    expect(traced(own, server)).toMatchObject(forwarded);
  });

  it("meets INPUT's filter before IPVS, and OUTPUT's after it", () => {
    expect(traced(incoming, server, "filter -A INPUT -m set --match-set S dst,dst -j DROP")).toMatchObject({ is: "drop" });
    expect(traced(incoming, server, "filter -A INPUT -m ipvs --ipvs -j DROP")).toMatchObject(forwarded);
    const vip = "-m ipvs --vaddr 10.96.0.1 --vproto tcp --vport 80 -j DROP";
    expect(traced(incoming, server, `filter -A OUTPUT ${vip}`)).toMatchObject({ is: "drop" });
    expect(traced(own, server, `filter -A OUTPUT ${vip}`)).toMatchObject({ is: "drop" });
    expect(traced(own, server, `filter -A OUTPUT ${vip.replace("80", "81")}`)).toMatchObject(forwarded);
  });

  it("is refused where a virtual server has no real server, and stays here where there is none", () => {
    expect([traced(incoming, "reject").is, traced(own, "reject").is, traced(incoming, undefined).is]).toEqual(["reject", "reject", "pass"]);
  });

  it("for a real server on this host isn't masqueraded", () => {
    const trace = traced(incoming, { address: "192.0.2.1", port: 8080 }, "nat -A POSTROUTING -j MASQUERADE");
    expect(trace).toMatchObject({ is: "forward", endpoint: "192.0.2.1:8080", masquerade: false });
  });
});

it("a set can't be destroyed while a rule names it", async () => {
  const { ipset, iptables } = createFake();
  iptables.write("nft", "IPv4", "*filter\n-A INPUT -m set --match-set S dst,dst -j ACCEPT\nCOMMIT\n");
  expect(ipset.run("destroy S").stderr).toContain("in use by a kernel component");
  await iptables.run("iptables-nft -D INPUT -m set --match-set S dst,dst -j ACCEPT");
  expect(ipset.run("destroy S").code).toBe(0);
});

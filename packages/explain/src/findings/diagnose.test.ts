import { describe, expect, it, test } from "vitest";
import { readIptablesTable } from "@turnout/host/iptables";
import { readNftTable } from "@turnout/host/nft";
import type { ExternalTable } from "@turnout/host/rules";
import { diagnose } from "./diagnose.ts";
import { NO_PROXY } from "./finding.ts";
import { findProcesses } from "../readings/processes.ts";
import type { HostSurvey } from "../readings/survey.ts";
import { writersOf } from "../readings/writers.ts";

const HOST: HostSurvey = {
  kernel: "6.1.0",
  isRoot: true,
  parameters: { forwardsIPv4: 1, forwardsIPv6: 1 },
  deviceParameters: [{ name: "all", rpFilter: 0, forwards: true, routesLoopback: false }],
  devices: [],
  uplinks: [],
  routes: undefined,
  addresses: [],
  tables: [],
  external: [],
  ownHooks: [],
  iptables: [],
  iptablesTools: [],
  writers: [],
  seesProcesses: true,
  virtualServers: undefined,
  unseen: [],
};
const writer = (name: string, isRunning: boolean, ...traces: readonly string[]): HostSurvey["writers"][number] => ({
  name,
  kind: "proxy",
  traces,
  isRunning,
  pids: [],
  stopped: [],
});
/** A table of iptables with the rules of one chain. */
const tableOf = (tool: "iptables-legacy" | "ip6tables-legacy", chain: string, policy: string, rules: readonly string[]): ExternalTable =>
  readIptablesTable(tool, "filter", [`:${chain} ${policy}`, ...rules.map((rule) => `-A ${chain} ${rule}`)].join("\n"));
const filter = (...rules: readonly string[]): ExternalTable => tableOf("iptables-legacy", "FORWARD", "ACCEPT", rules);
/** A table of nft with one base chain. */
const gate = (hook: string, policy: string, ...rules: readonly (readonly object[])[]): ExternalTable =>
  readNftTable("inet", "mine", {
    nftables: [
      { chain: { name: "gate", type: "filter", hook, prio: 0, policy } },
      ...rules.map((expr, index) => ({ rule: { chain: "gate", handle: index + 1, expr } })),
    ],
  });
const oif = (name: string): object => ({ match: { op: "==", left: { meta: { key: "oifname" } }, right: name } });
const bridge = { index: 2, name: "cni0", kind: "bridge", master: undefined, isLoopback: false, isUp: true, hasCarrier: true };

describe("what is said of a host", () => {
  test.each<readonly [name: string, found: Partial<HostSurvey>, ids: readonly string[]]>([
    ["nothing", {}, []],
    ["conntrack is half full", { parameters: { conntrackCount: 50, conntrackMax: 100 } }, []],
    ["conntrack is nearly full", { parameters: { conntrackCount: 85, conntrackMax: 100 } }, ["risk conntrack-full"]],
    ["conntrack is full", { parameters: { conntrackCount: 100, conntrackMax: 100 } }, ["fault conntrack-full"]],
    ["a bridge of pods without br_netfilter", { devices: [bridge] }, ["risk bridge-not-called"]],
    ["a bridge of pods", { devices: [bridge], parameters: { bridgeCallsIPv4: 1 } }, []],
    ["a pod's device that is down", { devices: [{ ...bridge, kind: "veth", namespace: 1, isUp: false }] }, ["risk pod-device-down"]],
    [
      "a pod's device without carrier",
      { devices: [{ ...bridge, kind: "veth", namespace: 1, hasCarrier: false }] },
      ["risk pod-device-down"],
    ],
    ["a pod's device", { devices: [{ ...bridge, kind: "veth", namespace: 1 }] }, []],
    ["a device that is nobody's, and down", { devices: [{ ...bridge, kind: "dummy", isUp: false }] }, []],
    ["Docker's bridge alone", { devices: [{ ...bridge, name: "docker0" }] }, []],
    [
      "all is loose, a device strict: the larger counts",
      {
        deviceParameters: [
          { name: "all", rpFilter: 2, forwards: true, routesLoopback: false },
          { name: "eth0", rpFilter: 1, forwards: true, routesLoopback: false },
        ],
      },
      [],
    ],
    ["kube-proxy serves", { writers: [writer("kube-proxy", true, "process kube-proxy (pid 7)")] }, ["note kube-proxy-serves"]],
    [
      "two proxies",
      { writers: [writer("kube-proxy", true, "process kube-proxy (pid 7)"), writer("Turnout", false, "table ip turnout")] },
      ["fault two-proxies"],
    ],
    ["one proxy twice", { writers: [writer("Turnout", true, "process node (pid 7)", "process node (pid 8)")] }, ["fault turnout-twice"]],
    ["a stopped proxy", { writers: [{ ...writer("Turnout", true, "process node (pid 7)"), stopped: [7] }] }, ["fault proxy-stopped"]],
    ["a rule that drops some packets", { external: [filter("-s 198.18.0.0/15 -j DROP")] }, ["note drops-some"]],
    ["a rule about no new connection", { external: [filter("-m conntrack --ctstate INVALID -j DROP")] }, []],
    ["IPVS of nobody", { virtualServers: 3 }, ["risk ipvs-in-use"]],
    ["the most serious first", { virtualServers: 3, parameters: { forwardsIPv4: 0 } }, ["fault ipv4-forwarding-off", "risk ipvs-in-use"]],
    [
      "all that leaves by an uplink",
      { uplinks: ["up0"], external: [filter("-o up+ -m comment --comment no -j DROP")] },
      ["fault drops-device"],
    ],
    [
      "a bridge of pods",
      { devices: [bridge], parameters: { bridgeCallsIPv4: 1 }, external: [filter("-i cni0 -j DROP")] },
      ["fault drops-device"],
    ],
    [
      "Docker's bridge is kept apart",
      { devices: [{ ...bridge, name: "docker0" }], external: [filter("-i docker0 -j DROP")] },
      ["note drops-some"],
    ],
    [
      "an uplink that some packets pass",
      { uplinks: ["up0"], external: [filter("-s 10.0.0.0/8 -j ACCEPT", "-i up0 -j DROP")] },
      ["note drops-some"],
    ],
    [
      "an uplink that Services' packets pass",
      { uplinks: ["up0"], external: [filter("-m conntrack --ctstate DNAT -j ACCEPT", "-i up0 -j DROP")] },
      ["note drops-some"],
    ],
    [
      "nothing but Services' packets are forwarded",
      { external: [filter("-m conntrack --ctstate DNAT -j ACCEPT", "-j DROP")] },
      ["note drops-some"],
    ],
    ["another device", { uplinks: ["up0"], external: [filter("-i up1 -j DROP")] }, ["note drops-some"]],
    [
      "IPv6 is dropped where there is none",
      {
        addresses: [{ ip: "10.0.0.1", prefixLength: 24, link: "up0" }],
        external: [tableOf("ip6tables-legacy", "FORWARD", "ACCEPT", ["-j DROP"])],
      },
      [],
    ],
  ])("%s", (_name, found, ids) => {
    expect(diagnose({ ...HOST, ...found }).map(({ severity, id }) => `${severity} ${id}`)).toEqual(ids);
  });
});

test("no forwarding of IPv6 is a fault where IPv6 Services are in force", () => {
  const off = { ...HOST, parameters: { forwardsIPv4: 1, forwardsIPv6: 0 } };
  const withAddress = { ...off, addresses: [{ ip: "fd00::2", prefixLength: 64, link: "up0" }] };
  const reported = (host: HostSurvey, ...served: readonly ("IPv4" | "IPv6")[]): readonly string[] =>
    diagnose(host, { ...NO_PROXY, served: new Set(served) }).map(({ severity, because }) => `${severity}: ${because}`);
  expect(reported(off, "IPv4")).toEqual([]);
  expect(reported(withAddress)).toEqual(["note: net.ipv6.conf.all.forwarding is 0, and up0 has fd00::2"]);
  expect(reported(off, "IPv6")).toEqual(["fault: net.ipv6.conf.all.forwarding is 0, and the proxy serves IPv6 Services"]);
});

test("a rule that drops a whole uplink is named with how it goes", () => {
  const [legacy] = diagnose({
    ...HOST,
    uplinks: ["up0"],
    external: [filter("-p tcp -j ACCEPT -m x", "-i up0 -j REJECT --reject-with icmp-port-unreachable")],
  });
  expect(legacy?.severity).toBe("note");
  const [found] = diagnose({
    ...HOST,
    uplinks: ["up0"],
    external: [filter("-i lo -j LOG", "-i up0 -j REJECT --reject-with icmp-port-unreachable")],
  });
  expect(found?.what).toContain("come by up0");
  expect(found?.because).toBe(
    "iptables-legacy chain FORWARD of table filter has the rule -A FORWARD -i up0 -j REJECT --reject-with icmp-port-unreachable",
  );
  expect(found?.fix).toMatch(/^iptables-legacy -t filter -D FORWARD -i up0 -j REJECT --reject-with icmp-port-unreachable; or /);
  const [nft] = diagnose({
    ...HOST,
    uplinks: ["up0"],
    external: [gate("forward", "accept", [oif("up0"), { counter: {} }, { drop: null }])],
  });
  expect([nft?.what, nft?.fix]).toEqual([
    expect.stringContaining("leave by up0"),
    expect.stringMatching(/^nft delete rule inet mine gate handle 1;/),
  ]);
});

describe("who writes rules", () => {
  const nat = (...names: readonly string[]): HostSurvey["iptables"][number] => ({
    variant: "nft",
    family: "IPv4",
    table: "nat",
    names,
  });
  const none = { processes: [], devices: [], tables: [], iptables: [] };
  it.each([
    ["kube-proxy, by its chains", { iptables: [nat("KUBE-SERVICES")] }, ["kube-proxy"]],
    ["Turnout, by its marker beside the same chains", { iptables: [nat("KUBE-SERVICES", "KUBE-SVC-TURNOUT")] }, ["Turnout"]],
    ["kubelet", { iptables: [nat("KUBE-KUBELET-CANARY")] }, ["kubelet"]],
    ["kubelet, by what is its alone", { iptables: [nat("KUBE-FIREWALL", "KUBE-IPTABLES-HINT")] }, ["kubelet"]],
    ["kubelet or a proxy that is gone", { iptables: [nat("KUBE-FIREWALL")] }, ["kubelet or an iptables proxy"]],
    [
      "a proxy, whose chain kubelet would make, too",
      { iptables: [nat("KUBE-SERVICES", "KUBE-SVC-TURNOUT"), { ...nat("KUBE-FIREWALL"), table: "filter" }] },
      ["Turnout"],
    ],
    ["devices", { devices: ["lo", "eth0", "flannel.1", "cali0123456789a", "docker0"] }, ["flannel", "Calico", "Docker"]],
    ["tables", { tables: ["inet firewalld", "ip kube-proxy", "inet mine"] }, ["firewalld", "kube-proxy"]],
    [
      "a launcher and its child are one",
      {
        processes: [
          { pid: 7, name: "node", command: "node /lib/node_modules/@turnout/cli/dist/main.js run", parent: 1, isStopped: false },
          { pid: 8, name: "MainThread", command: "node /lib/node_modules/@turnout/cli/dist/main.js run", parent: 7, isStopped: false },
          { pid: 9, name: "MainThread", command: "node server.js run", parent: 1, isStopped: false },
        ],
      },
      ["Turnout"],
    ],
  ])("%s", (_name, traces, names) => {
    const writers = writersOf({ ...none, ...traces });
    expect(writers.map(({ name }) => name)).toEqual(names);
    expect(writers.every(({ traces: reported }) => reported.length === 1)).toBe(true);
  });

  it("finds processes of this network namespace alone", async () => {
    const files: Readonly<Record<string, string>> = {
      "/proc/self/ns/net": "net:[1]",
      "/proc/7/comm": "kube-proxy\n",
      "/proc/7/cmdline": "kube-proxy\0--config=x\0",
      "/proc/7/status": "State:\tT (stopped)\nPPid:\t1\n",
      "/proc/7/ns/net": "net:[1]",
      "/proc/8/comm": "kube-proxy\n",
      "/proc/8/ns/net": "net:[2]",
      "/proc/9/comm": "sh\n",
      "/proc/9/ns/net": "net:[1]",
    };
    const read = (path: string): Promise<string | undefined> => Promise.resolve(files[path]);
    const list = (): Promise<readonly string[]> => Promise.resolve(["7", "8", "9", "self"]);
    expect(await findProcesses((name) => name === "kube-proxy", { read, link: read, list })).toEqual([
      { pid: 7, name: "kube-proxy", command: "kube-proxy --config=x", parent: 1, isStopped: true },
    ]);
  });
});

it("names the devices of pods that are down, with the bridge and what mends it", () => {
  const devices = [bridge, { ...bridge, index: 3, name: "veth1", kind: "veth", master: 2, namespace: 1, isUp: false }];
  const [found] = diagnose({ ...HOST, devices, parameters: { bridgeCallsIPv4: 1 } });
  expect(found?.because).toBe("veth1 (a port of cni0) is down");
  expect(found?.fix).toMatch(/^ip link set veth1 up; /);
});

describe("where a process answers Services", () => {
  const filterOf = (chain: string, policy: "ACCEPT" | "DROP", ...rules: readonly string[]): ExternalTable =>
    tableOf("iptables-legacy", chain, policy, rules);
  const reported = (found: Partial<HostSurvey>, answersItself: boolean): readonly string[] =>
    diagnose({ ...HOST, ...found }, { ...NO_PROXY, served: new Set(["IPv4"]), answersItself }).map(
      ({ severity, id }) => `${severity} ${id}`,
    );

  it.each<readonly [name: string, found: Partial<HostSurvey>, inKernel: string, byProcess: string]>([
    ["FORWARD drops", { external: [filterOf("FORWARD", "DROP")] }, "fault drops-forward", "risk drops-forward"],
    ["INPUT drops", { external: [filterOf("INPUT", "DROP")] }, "risk drops-input", "fault drops-input"],
    ["INPUT lets some in", { external: [filterOf("INPUT", "DROP", "-p tcp --dport 22 -j ACCEPT")] }, "", "risk drops-input"],
    [
      "what Services translate alone passes INPUT",
      { external: [filterOf("INPUT", "DROP", "-m conntrack --ctstate DNAT -j ACCEPT")] },
      "",
      "risk drops-input",
    ],
    ["nothing is forwarded", { parameters: { forwardsIPv4: 0 } }, "fault ipv4-forwarding-off", "risk ipv4-forwarding-off"],
    ["a bridge does not call the rules", { devices: [bridge] }, "risk bridge-not-called", ""],
    ["the bridge that has the addresses of Services", { devices: [{ ...bridge, name: "turnout0" }] }, "", ""],
  ])("%s", (_name, found, inKernel, byProcess) => {
    expect([reported(found, false)[0] ?? "", reported(found, true)[0] ?? ""]).toEqual([inKernel, byProcess]);
  });

  it("pods' devices that INPUT drops are a fault", () => {
    const devices = ["veth1", "veth2"].map((name) => ({ ...bridge, name, kind: "veth", namespace: 1 }));
    const external = [filterOf("INPUT", "DROP", "-i lo -j ACCEPT", "-i eth0 -j ACCEPT")];
    expect(reported({ devices, external, uplinks: ["eth0"] }, true)).toEqual(["fault drops-device", "risk drops-input"]);
    expect(reported({ devices, external, uplinks: ["eth0"] }, false)).toEqual([]);
  });

  it("no rule about translated packets mends it", () => {
    const [found] = diagnose({ ...HOST, external: [filterOf("INPUT", "DROP")] }, { ...NO_PROXY, answersItself: true });
    expect(found?.fix).toContain("iptables-legacy -t filter -I INPUT -p tcp --dport 30000:32767 -j ACCEPT");
    expect(found?.fix).not.toContain("DNAT");
  });
});

describe("devices that a chain drops", () => {
  const pod = (name: string) => ({ ...bridge, name, kind: "veth", namespace: 1 });
  const accepting = (...names: readonly string[]) => names.map((name) => [oif(name), { accept: null }]);
  const found = (devices: readonly string[], ...accepted: readonly string[]) =>
    diagnose({ ...HOST, uplinks: ["eth0"], devices: devices.map(pod), external: [gate("postrouting", "drop", ...accepting(...accepted))] });

  it("are those of pods, where postrouting lets only lo and the uplink through", () => {
    expect(found(["veth1", "veth2"], "lo", "eth0")).toMatchObject([
      {
        id: "drops-device",
        severity: "fault",
        what: expect.stringContaining("leave by pods' devices (veth1, veth2)") as unknown,
        because: "chain inet mine gate has the policy drop, and no rule accepts them",
      },
    ]);
  });

  it("are no fault where it is one of several pods, as a NetworkPolicy has it, or where there is one", () => {
    expect(found(["veth1", "veth2"], "lo", "eth0", "veth1")).toEqual([]);
    expect(found(["veth1"], "lo", "eth0")).toEqual([]);
  });

  it("are the uplink, too", () => {
    expect(found(["veth1", "veth2"], "lo", "veth1", "veth2")[0]?.what).toContain("leave by eth0");
  });
});

describe("a host whose own programs find no route to Services", () => {
  const address = (ip: string): HostSurvey["addresses"][number] => ({ ip, prefixLength: 24, link: "eth0" });
  const route = (range: string, type = "unicast"): NonNullable<HostSurvey["routes"]>[number] => ({
    range,
    prefixLength: Number(range.split("/")[1]),
    type,
    device: "eth0",
    nextHop: undefined,
    metric: 0,
  });
  const LINK = route("192.0.2.0/24");
  const ADDRESSES = [address("127.0.0.1"), address("192.0.2.1"), address("::1"), address("fe80::1"), address("2001:db8::1")];
  type Row = readonly [name: string, routes: HostSurvey["routes"], proxy: Partial<typeof NO_PROXY>, because: string];
  test.each<Row>([
    ["a default route", [LINK, route("0.0.0.0/0")], {}, ""],
    ["a blackhole", [LINK, route("0.0.0.0/0", "blackhole")], {}, "the route blackhole default"],
    ["a prohibiting one", [LINK, route("0.0.0.0/0", "prohibit")], {}, "the route prohibit default"],
    ["a route for the service range", [LINK, route("10.96.0.0/16")], { serviceRanges: ["10.96.0.0/16"] }, ""],
    [
      "one of two service ranges has a route",
      [LINK, route("10.96.0.0/16")],
      { serviceRanges: ["10.96.0.0/16", "10.97.0.0/16"] },
      "no default IPv4 route, and no other one for 10.97.0.0/16",
    ],
    [
      "a blackhole for the service range",
      [route("0.0.0.0/0"), route("10.96.0.0/12", "blackhole")],
      { serviceRanges: ["10.96.0.0/16"] },
      "the route blackhole 10.96.0.0/12",
    ],
    ["IPv6 Services are not served", [route("0.0.0.0/0")], { served: new Set(["IPv4"] as const) }, ""],
    [
      "IPv6 Services are served",
      [route("0.0.0.0/0")],
      { served: new Set(["IPv4", "IPv6"] as const) },
      "no default IPv6 route; one for the service range would do, which is known only while the proxy answers",
    ],
    ["a backend that needs no route", [LINK], { routesFirst: false }, ""],
    ["routes that could not be read", undefined, {}, ""],
  ])("%s", (_name, routes, proxy, because) => {
    const found = diagnose({ ...HOST, addresses: ADDRESSES, routes }, { ...NO_PROXY, ...proxy });
    expect(found.map((one) => [one.id, one.severity, one.because])).toEqual(because === "" ? [] : [["no-default-route", "risk", because]]);
  });

  it("of IPv6 where it has no other addresses", () => {
    const [found] = diagnose({ ...HOST, addresses: ADDRESSES.slice(2), routes: [], devices: [{ ...bridge, kind: "", name: "eth0" }] });
    expect(found?.what).toContain("IPv6 cluster IPs");
    expect(found?.fix).toMatch(/^ip -6 route add SERVICE-RANGE dev eth0, /);
  });
});

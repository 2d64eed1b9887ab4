import { describe, expect, it, test } from "vitest";
import { diagnose } from "./diagnose.ts";
import { findProcesses } from "./processes.ts";
import type { HostSurvey } from "./survey.ts";
import { senseOfIptables, senseOfNft } from "./verdicts.ts";
import { writersOf } from "./writers.ts";

const HOST: HostSurvey = {
  kernel: "6.1.0",
  isRoot: true,
  parameters: { forwardsIPv4: 1, forwardsIPv6: 1 },
  deviceParameters: [{ name: "all", rpFilter: 0, forwards: true, routesLoopback: false }],
  devices: [],
  addresses: [],
  tables: [],
  chains: [],
  ownHooks: [],
  iptables: [],
  iptablesTools: [],
  writers: [],
  virtualServers: undefined,
  unseen: [],
};
const writer = (name: string, isRunning: boolean, ...traces: readonly string[]): HostSurvey["writers"][number] => ({
  name,
  kind: "proxy",
  traces,
  isRunning,
});
const bridge = { index: 2, name: "cni0", kind: "bridge", master: undefined, isLoopback: false };

describe("what is said of a host", () => {
  test.each<readonly [name: string, found: Partial<HostSurvey>, ids: readonly string[]]>([
    ["nothing", {}, []],
    ["conntrack is half full", { parameters: { conntrackCount: 50, conntrackMax: 100 } }, []],
    ["conntrack is nearly full", { parameters: { conntrackCount: 85, conntrackMax: 100 } }, ["risk conntrack-full"]],
    ["conntrack is full", { parameters: { conntrackCount: 100, conntrackMax: 100 } }, ["fault conntrack-full"]],
    ["a bridge of pods without br_netfilter", { devices: [bridge] }, ["risk bridge-not-called"]],
    ["a bridge of pods", { devices: [bridge], parameters: { bridgeCallsIPv4: 1 } }, []],
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
    ["IPVS of nobody", { virtualServers: 3 }, ["risk ipvs-in-use"]],
    ["the most serious first", { virtualServers: 3, parameters: { forwardsIPv4: 0 } }, ["fault ipv4-forwarding-off", "risk ipvs-in-use"]],
  ])("%s", (_name, found, ids) => {
    expect(diagnose({ ...HOST, ...found }).map(({ severity, id }) => `${severity} ${id}`)).toEqual(ids);
  });
});

describe("what a rule does", () => {
  const state = (right: unknown): unknown => ({ match: { op: "in", left: { ct: { key: "state" } }, right } });
  it.each([
    [[state(["established", "related"]), { accept: null }], { fate: "accepts", isForAll: false, isForKnownFlows: true }],
    [[state({ set: ["established", "new"] }), { accept: null }], { fate: "accepts", isForKnownFlows: false }],
    [[{ counter: {} }, { drop: null }], { fate: "drops", isForAll: true }],
    [[{ reject: { type: "icmpx" } }], { fate: "drops", isForAll: true }],
    [[{ match: { op: "==", left: { meta: { key: "iifname" } }, right: "lo" } }, { dnat: { addr: "10.0.0.1" } }], { fate: "translates" }],
    [[{ xt: null }, { drop: null }], { fate: "drops", isForAll: false }],
    [[{ jump: { target: "a" } }], { fate: "calls", calls: ["a"] }],
  ])("of nft: %j", (expr, sense) => {
    expect(senseOfNft({ expr })).toMatchObject(sense);
  });

  it.each([
    ["-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", { fate: "accepts", isForKnownFlows: true }],
    ["-m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP", { fate: "drops", isForKnownFlows: false }],
    ['-m comment --comment "drop the rest" -j DROP', { fate: "drops", isForAll: true }],
    ["-p tcp -j REJECT --reject-with icmp-port-unreachable", { fate: "drops", isForAll: false }],
    ["-j MINE", { fate: "calls", calls: ["MINE"], isForAll: true }],
    ["-j MARK --set-xmark 0x1/0x1", { fate: "goes on" }],
  ])("of iptables: %s", (rule, sense) => {
    expect(senseOfIptables(rule, (target) => target === "MINE")).toMatchObject(sense);
  });
});

describe("who writes rules", () => {
  const nat = (...names: readonly string[]): HostSurvey["iptables"][number] => ({
    variant: "nft",
    family: "IPv4",
    table: "nat",
    chainCount: names.length,
    names,
    chains: [],
  });
  const none = { processes: [], devices: [], tables: [], iptables: [] };
  it.each([
    ["kube-proxy, by its chains", { iptables: [nat("KUBE-SERVICES")] }, ["kube-proxy"]],
    ["Turnout, by its marker beside the same chains", { iptables: [nat("KUBE-SERVICES", "KUBE-SVC-TURNOUT")] }, ["Turnout"]],
    ["kubelet", { iptables: [nat("KUBE-KUBELET-CANARY")] }, ["kubelet"]],
    ["devices", { devices: ["lo", "eth0", "flannel.1", "cali0123456789a", "docker0"] }, ["flannel", "Calico", "Docker"]],
    ["tables", { tables: ["inet firewalld", "ip kube-proxy", "inet mine"] }, ["firewalld", "kube-proxy"]],
    [
      "a launcher and its child are one",
      {
        processes: [
          { pid: 7, name: "node", command: "node /lib/node_modules/@turnout/cli/dist/main.js run", parent: 1 },
          { pid: 8, name: "MainThread", command: "node /lib/node_modules/@turnout/cli/dist/main.js run", parent: 7 },
          { pid: 9, name: "MainThread", command: "node server.js run", parent: 1 },
        ],
      },
      ["Turnout"],
    ],
  ])("%s", (_name, traces, names) => {
    const writers = writersOf({ ...none, ...traces });
    expect(writers.map(({ name }) => name)).toEqual(names);
    expect(writers.every(({ traces: told }) => told.length === 1)).toBe(true);
  });

  it("finds processes of this network namespace alone", async () => {
    const files: Readonly<Record<string, string>> = {
      "/proc/self/ns/net": "net:[1]",
      "/proc/7/comm": "kube-proxy\n",
      "/proc/7/cmdline": "kube-proxy\0--config=x\0",
      "/proc/7/status": "PPid:\t1\n",
      "/proc/7/ns/net": "net:[1]",
      "/proc/8/comm": "kube-proxy\n",
      "/proc/8/ns/net": "net:[2]",
      "/proc/9/comm": "sh\n",
      "/proc/9/ns/net": "net:[1]",
    };
    const read = (path: string): Promise<string | undefined> => Promise.resolve(files[path]);
    const list = (): Promise<readonly string[]> => Promise.resolve(["7", "8", "9", "self"]);
    expect(await findProcesses((name) => name === "kube-proxy", { read, link: read, list })).toEqual([
      { pid: 7, name: "kube-proxy", command: "kube-proxy --config=x", parent: 1 },
    ]);
  });
});

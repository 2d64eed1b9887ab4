import { describe, expect, test } from "vitest";
import type { RawFlags } from "./config-flags.ts";
import { loadConfig } from "./loaded-config.ts";
import { configFileText, runConfig, type RunConfig } from "./run-config.ts";

const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

/** Backends that are called otherwise than kube-proxy's mode. */
const MODES: Readonly<Record<string, { readonly proxyMode: string }>> = {
  nft: { proxyMode: "nftables" },
  winkernel: { proxyMode: "kernelspace" },
};

function configure(flags: RawFlags, body?: string, backend = "nft"): RunConfig {
  const file = body === undefined ? undefined : { path: "config.yaml", text: HEAD + body };
  return runConfig(loadConfig({ flags, file, hostname: "Host.Example" }), { name: backend, ...MODES[backend] });
}

describe("defaults", () => {
  test("are kube-proxy's, with our shorter minimum between syncs", () => {
    expect(configure({})).toMatchObject({
      nodeName: "host.example",
      bindAddress: undefined,
      healthzBindAddress: { ip: "0.0.0.0", port: 10_256 },
      metricsBindAddress: { ip: "127.0.0.1", port: 10_249 },
      bindAddressHardFail: false,
      syncPeriodMs: 30_000,
      minSyncPeriodMs: 100,
      kubeconfig: undefined,
      master: undefined,
      backendOptions: {},
      proxyMode: "nftables",
      warnings: [],
      settings: {
        masqueradeAll: false,
        masqueradeBit: 14,
        nodePortAddresses: undefined,
        detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] },
      },
    });
  });

  test("servers follow an IPv6 bind address", () => {
    const config = configure({ "bind-address": "fd00::1" });
    expect(config.bindAddress).toBe("fd00::1");
    expect(config.healthzBindAddress).toEqual({ ip: "::", port: 10_256 });
    expect(config.metricsBindAddress).toEqual({ ip: "::1", port: 10_249 });
    expect(configure({ "bind-address": "::" }).bindAddress).toBeUndefined();
  });

  test("the result is frozen", () => {
    expect(Object.isFrozen(configure({}))).toBe(true);
  });
});

describe("sections follow the backend's mode", () => {
  const body = `
iptables: {masqueradeAll: true, masqueradeBit: 1, syncPeriod: 10s, minSyncPeriod: 2s, localhostNodePorts: false}
nftables: {masqueradeAll: false, masqueradeBit: 2, syncPeriod: 20s, minSyncPeriod: 3s}
ipvs: {syncPeriod: 40s, minSyncPeriod: 4s, scheduler: lc, strictARP: true, tcpTimeout: 15m, excludeCIDRs: [192.0.2.0/24]}
winkernel: {sourceVip: 10.0.0.9}
`;
  test.each([
    ["nft", { masqueradeAll: false, masqueradeBit: 2 }, 20_000, 3_000, {}],
    ["iptables", { masqueradeAll: true, masqueradeBit: 1 }, 10_000, 2_000, { localhostNodePorts: false }],
    ["winkernel", { masqueradeAll: true, masqueradeBit: 1 }, 10_000, 2_000, { sourceVip: "10.0.0.9" }],
    [
      "ipvs",
      { masqueradeAll: true, masqueradeBit: 1 },
      40_000,
      4_000,
      { scheduler: "lc", strictARP: true, tcpTimeout: "15m0s", excludeCIDRs: ["192.0.2.0/24"] },
    ],
    ["ebpf", { masqueradeAll: true, masqueradeBit: 1 }, 10_000, 2_000, {}],
  ])("%s", (backend, settings, syncPeriodMs, minSyncPeriodMs, backendOptions) => {
    expect(configure({}, body, backend)).toMatchObject({ settings, syncPeriodMs, minSyncPeriodMs });
    expect(configure({}, body, backend).backendOptions).toEqual(backendOptions);
  });

  test("flags go to the section in use", () => {
    const flags = { "masquerade-all": true, "iptables-sync-period": "5s", "iptables-min-sync-period": "0" } as const;
    for (const backend of ["nft", "iptables"]) {
      expect(configure(flags, undefined, backend)).toMatchObject({
        settings: { masqueradeAll: true },
        syncPeriodMs: 5_000,
        minSyncPeriodMs: 0,
      });
    }
    expect(configure({ "iptables-masquerade-bit": "3" }, undefined, "iptables").settings.masqueradeBit).toBe(3);
    expect(configure({ "ipvs-sync-period": "7s" }, undefined, "ipvs").syncPeriodMs).toBe(7_000);
  });

  test("a backend's mode is its own word for it, or else its name", () => {
    const loaded = loadConfig({ flags: {}, file: undefined, hostname: "node1" });
    expect(runConfig(loaded, { name: "mine", proxyMode: "nftables" }).proxyMode).toBe("nftables");
    expect(runConfig(loaded, { name: "mine" }).proxyMode).toBe("mine");
  });
});

describe("precedence", () => {
  test("with a file, configuration flags are ignored with a warning", () => {
    const config = configure({ "masquerade-all": "true", "cluster-cidr": "10.0.0.0/8" }, "nftables: {masqueradeAll: false}\n");
    expect(config.settings.masqueradeAll).toBe(false);
    expect(config.settings.detectLocal).toEqual({ mode: "ClusterCIDR", clusterCIDRs: [] });
    expect(config.warnings).toEqual(["--config is given, so --masquerade-all, --cluster-cidr are ignored"]);
  });

  test.each([
    ["--node-name beats all", { "node-name": "A", "hostname-override": "B" }, "a"],
    ["--hostname-override beats the file", { "hostname-override": " B " }, "b"],
    ["the file beats the host", {}, "filed"],
  ])("node name: %s", (_name, flags, expected) => {
    expect(configure(flags, "hostnameOverride: Filed\n").nodeName).toBe(expected);
  });

  test("--master counts beside a file", () => {
    expect(configure({ master: "https://10.0.0.1" }, "mode: ''\n").master).toBe("https://10.0.0.1");
    expect(configure({ master: "" }, "mode: ''\n").master).toBeUndefined();
  });

  test("an empty server address turns it off as a flag, and means the default in a file", () => {
    expect(configure({ "healthz-bind-address": "", "metrics-bind-address": "" })).toMatchObject({
      healthzBindAddress: undefined,
      metricsBindAddress: undefined,
    });
    expect(configure({}, 'healthzBindAddress: ""\n').healthzBindAddress).toEqual({ ip: "0.0.0.0", port: 10_256 });
  });

  test("deprecated port flags", () => {
    expect(configure({ "healthz-port": "0", "metrics-port": "99" })).toMatchObject({
      healthzBindAddress: undefined,
      metricsBindAddress: { ip: "127.0.0.1", port: 99 },
    });
    expect(() => configure({ "metrics-port": "70000" })).toThrow("--metrics-port");
  });

  test("what has no effect is said once, when somebody sets it", () => {
    expect(configure({ "config-sync-period": "1h" }, undefined).warnings).toEqual(["accepted, but without effect here: configSyncPeriod"]);
    expect(configure({ "config-sync-period": "15m0s", "kube-api-qps": "5" }, undefined).warnings).toEqual([]);
    expect(configure({ "feature-gates": "TurnoutRepairOnNotice=false" }, undefined)).toMatchObject({
      repairsOnNotice: false,
      warnings: [],
    });
  });
});

describe("values", () => {
  test.each([
    ["a masquerade bit above 31", "iptables: {masqueradeBit: 32}", "32 must be 0 to 31: config.yaml: iptables.masqueradeBit"],
    [
      "a sync period below 0, as it was written",
      "nftables: {syncPeriod: -5s}",
      "-5s must be greater than 0: config.yaml: nftables.syncPeriod",
    ],
    ["a min sync period below 0", "nftables: {minSyncPeriod: -1s}", "must not be negative"],
    ["an unknown mode", "mode: userspace", 'must be one of "", iptables, ipvs, nftables, kernelspace'],
    ["an unknown detect-local mode", "detectLocalMode: Magic", "must be one of"],
    ["a bad bind address", "bindAddress: somewhere", "must be an IP address"],
    ["a bad healthz address", "healthzBindAddress: localhost:1", "must be IP:port"],
    ["a bad metrics port", "metricsBindAddress: 127.0.0.1:70000", "must be IP:port"],
    ["a node port address that is no CIDR", "nodePortAddresses: [10.0.0.1]", /\] "10.0.0.1" is not a CIDR/],
    ["an oom score out of range", "oomScoreAdj: 1001", "must be -1000 to 1000"],
    ["negative conntrack limits", "conntrack: {min: -1}", "must not be negative"],
    ["an unknown feature gate", "featureGates: {Nonesuch: true}", "unrecognized feature gate: Nonesuch: config.yaml: featureGates"],
    ["hidden metrics of another version", "showHiddenMetricsForVersion: '1.2'", "must be left out, or 1.28 to 1.36"],
    ["a log format", "logging: {format: xml}", "must be one of text, json"],
  ])("refuses %s", (_name, body, message) => {
    expect(() => configure({}, body)).toThrow(message);
  });

  test("ipvs is refused by its gate, and no other mode", () => {
    const body = "featureGates: {KubeProxyIPVS: false}\n";
    expect(() => configure({}, body, "ipvs")).toThrow("KubeProxyIPVS=false refuses mode ipvs: config.yaml: featureGates");
    expect(() => configure({ "feature-gates": "KubeProxyIPVS=false" }, undefined, "ipvs")).toThrow(": --feature-gates");
    expect(configure({}, body, "iptables").warnings).toEqual([]);
    expect(configure({}, "featureGates: {KubeProxyIPVS: true}\n", "ipvs").warnings).toEqual([]);
  });

  test.each<
    readonly [flags: RawFlags, externalIPs: readonly string[] | undefined, followsClusterVersion: boolean, warning: readonly string[]]
  >([
    [{}, undefined, true, []],
    [{ "feature-gates": "AllowServiceExternalIPs=true" }, undefined, false, []],
    [{ "feature-gates": "AllowServiceExternalIPs=false" }, [], false, []],
    [{ "feature-gates": "AllowServiceExternalIPs=false", "allowed-external-ip-cidrs": "none" }, [], false, []],
    [{ "allowed-external-ip-cidrs": "192.0.2.0/24" }, ["192.0.2.0/24"], false, []],
    [
      { "feature-gates": "AllowServiceExternalIPs=false", "allowed-external-ip-cidrs": "192.0.2.0/24" },
      ["192.0.2.0/24"],
      false,
      ["--allowed-external-ip-cidrs counts, and so the feature gate AllowServiceExternalIPs=false has no effect"],
    ],
  ])(
    "externalIPs are allowed by the flag, then the gate, then the cluster's version: %j",
    (flags, externalIPs, followsClusterVersion, warning) => {
      const { allowedAddresses, warnings, ...config } = configure(flags);
      expect(allowedAddresses.externalIPs?.map(({ text }) => text)).toEqual(externalIPs);
      expect(allowedAddresses.loadBalancerIPs).toBeUndefined();
      expect(config).toMatchObject({ followsClusterVersion });
      expect(warnings).toEqual(warning);
    },
  );

  test.each<readonly [gates: string, backend: string, isServed: boolean]>([
    ["", "nft", true],
    ["KubeProxyNFTablesLocalhostNodePorts=true", "nft", true],
    ["KubeProxyNFTablesLocalhostNodePorts=false", "nft", false],
    ["KubeProxyNFTablesLocalhostNodePorts=false", "ebpf", true],
  ])("node ports on loopback: gates '%s' and %s", (gates, backend, isServed) => {
    const { settings } = configure({ "feature-gates": gates }, undefined, backend);
    expect(settings.localhostNodePorts).toBe(isServed ? undefined : false);
  });

  test("of other modes' sections are not looked at", () => {
    const body = "ipvs: {excludeCIDRs: [foo], tcpTimeout: -1s}\nportRange: foo\n";
    expect(() => configure({}, body)).not.toThrow();
    expect(() => configure({}, body, "ipvs")).toThrow('"foo" is not a CIDR like 10.0.0.0/8: config.yaml: ipvs.excludeCIDRs');
    expect(() => configure({}, "nftables: {masqueradeBit: 32, syncPeriod: -1s}\n", "iptables")).not.toThrow();
    expect(() => configure({}, "iptables: {syncPeriod: -1s}\n", "iptables")).toThrow("-1s must be greater than 0");
  });

  test("empty flags that manifests' variables may leave ask for nothing", () => {
    const { flagz } = configure({});
    expect({ ...configure({ "bind-address": "", "hostname-override": "", "node-name": "" }), flagz }).toEqual(configure({}));
  });

  test("gates of kube-proxy are taken, and a warning names them once", () => {
    const { warnings } = configure({ "feature-gates": "ContextualLogging=true,AllAlpha=false" });
    expect(warnings).toEqual(["accepted, but without effect here: featureGates (ContextualLogging)"]);
  });

  test("deprecated flags are said to be", () => {
    expect(configure({ "healthz-port": "99" }).warnings).toEqual(["--healthz-port is deprecated, use --healthz-bind-address instead"]);
  });

  test("one Service may have a million entries", () => {
    expect(configure({ "max-service-entries": "1000000" }).serviceEntriesMax).toBe(1_000_000);
    for (const text of ["0", "1000001"])
      expect(() => configure({ "max-service-entries": text })).toThrow(`${text} must be between 1 and 1000000: --max-service-entries`);
  });

  test("whole numbers are written as Go reads them", () => {
    for (const [text, bit] of [
      ["0x0e", 14],
      ["0b101", 5],
      ["017", 15],
      ["0o17", 15],
      ["1_0", 10],
      ["+3", 3],
    ] as const)
      expect(configure({ "iptables-masquerade-bit": text }, undefined, "iptables").settings.masqueradeBit).toBe(bit);
    for (const text of ["1__0", "1_", "08", "0x", "3000000000", ""])
      expect(() => configure({ "conntrack-min": text })).toThrow("whole number");
  });
});

describe("logging", () => {
  const said = (flags: RawFlags, body?: string): unknown => {
    const file = body === undefined ? undefined : { path: "config.yaml", text: HEAD + body };
    return loadConfig({ flags, file, hostname: "host" }).logging;
  };

  test("flags beat the file, which they do for nothing else but the host name", () => {
    expect(said({}, "logging: {format: json, verbosity: 4}\n")).toEqual({ format: "json", verbosity: 4 });
    expect(said({ v: "2", "logging-format": "text" }, "logging: {format: json, verbosity: 4}\n")).toEqual({ format: "text", verbosity: 2 });
    expect(said({})).toEqual({ format: undefined, verbosity: undefined });
  });

  test.each([
    [{ "log-json-split-stream": "true" }, "it needs the feature gate LoggingAlphaOptions: --log-json-split-stream"],
    [{ "log-text-info-buffer-size": "1Mi" }, "it needs the feature gate LoggingAlphaOptions: --log-text-info-buffer-size"],
    [{ "logging-format": "json", vmodule: "a=1" }, "it needs logging format text: --vmodule"],
    [{ vmodule: "foo" }, "expected pattern=N,other=N"],
    [{ v: "foo" }, 'expected a level like 4, found "foo": --v'],
  ] as const)("refuses %j", (flags, message) => {
    expect(() => said(flags)).toThrow(message);
  });

  test("alpha options are taken with their gate, and have no effect", () => {
    const { warnings } = configure({ "log-json-split-stream": "true", "feature-gates": "AllAlpha=true" });
    expect(warnings[0]).toContain("logging.options.json.splitStream");
  });
});

test("a configuration is written as a file that means the same", () => {
  const flags = { "masquerade-all": true, "iptables-sync-period": "5s", "cluster-cidr": "10.0.0.0/8", v: "2", vmodule: "a=1" } as const;
  const said = loadConfig({ flags, file: undefined, hostname: "host" });
  const written = loadConfig({ flags: {}, file: { path: "written.yaml", text: configFileText(said) }, hostname: "host" });
  for (const backend of ["nft", "iptables"]) {
    const { settings, syncPeriodMs, minSyncPeriodMs, configz } = runConfig(said, { name: backend, ...MODES[backend] });
    expect(runConfig(written, { name: backend, ...MODES[backend] })).toMatchObject({ settings, syncPeriodMs, minSyncPeriodMs, configz });
  }
  expect(written.logging).toMatchObject({ verbosity: 2 });
  expect(written.warnings).toEqual([]);
});

describe("detect-local and addresses", () => {
  test.each([
    ["ClusterCIDR, dual", { "cluster-cidr": "10.1.2.3/8,fd00::/8" }, { mode: "ClusterCIDR", clusterCIDRs: ["10.0.0.0/8", "fd00::/8"] }],
    ["NodeCIDR", { "detect-local-mode": "NodeCIDR" }, { mode: "NodeCIDR" }],
    [
      "a bridge",
      { "detect-local-mode": "BridgeInterface", "pod-bridge-interface": "br0" },
      { mode: "BridgeInterface", bridgeInterface: "br0" },
    ],
    [
      "a prefix",
      { "detect-local-mode": "InterfaceNamePrefix", "pod-interface-name-prefix": "veth" },
      { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
    ],
  ])("%s", (_name, flags, expected) => {
    expect(configure(flags).settings.detectLocal).toEqual(expected);
  });

  test.each([
    ["a bridge without a name", { "detect-local-mode": "BridgeInterface" }, "needs it: --pod-bridge-interface"],
    ["a prefix without one", { "detect-local-mode": "InterfaceNamePrefix" }, "needs it: --pod-interface-name-prefix"],
    ["two CIDRs of one family", { "cluster-cidr": "10.0.0.0/8,11.0.0.0/8" }, "one of each family: --cluster-cidr"],
    ["three CIDRs", { "cluster-cidr": "10.0.0.0/8,fd00::/8,11.0.0.0/8" }, "one of each family: --cluster-cidr"],
    ["no CIDR", { "cluster-cidr": "10.0.0.0" }, "--cluster-cidr"],
    ["min above sync period", { "iptables-sync-period": "1s", "iptables-min-sync-period": "2s" }, "--iptables-min-sync-period"],
    ["a blank node name", { "hostname-override": "  " }, "must not be blank"],
    ["a flag without its value", { "cluster-cidr": true }, "--cluster-cidr"],
    ["a switch that is neither", { "masquerade-all": "yes" }, "expected true or false"],
    ["a bad number", { "iptables-masquerade-bit": "1x" }, "expected a whole number"],
  ] as const)("refuses %s", (_name, flags, message) => {
    expect(() => configure(flags)).toThrow(message);
  });

  test("a setting from a file is named with the file", () => {
    expect(() => configure({}, "clusterCIDR: 10.0.0.0/99\n")).toThrow(
      '"10.0.0.0/99" is not a CIDR like 10.0.0.0/8: config.yaml: clusterCIDR',
    );
  });

  test("keywords and CIDRs for node ports", () => {
    const flags = { "nodeport-addresses": "primary,10.0.0.0/8" };
    expect(configure(flags).settings.nodePortAddresses).toEqual(["primary", "10.0.0.0/8"]);
  });
});

test("/configz shows every field once, durations as Go writes them", () => {
  const { configz } = configure({ "metrics-bind-address": "0.0.0.0" }, undefined);
  expect(configz).toMatchObject({
    "kubeproxy.config.k8s.io": {
      kind: "KubeProxyConfiguration",
      apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
      logging: { format: "", flushFrequency: "5s", verbosity: 0 },
      nftables: { syncPeriod: "30s", minSyncPeriod: "100ms", masqueradeBit: 14 },
      conntrack: { tcpEstablishedTimeout: "24h0m0s" },
      metricsBindAddress: "0.0.0.0:10249",
      healthzBindAddress: "0.0.0.0:10256",
    },
  });
});

test.each([
  ["", "nft", "nftables", "ClusterCIDR"],
  ["", "ebpf", "", "ClusterCIDR"],
  ["mode: iptables\ndetectLocalMode: NodeCIDR\n", "nft", "iptables", "NodeCIDR"],
  ['mode: ""\ndetectLocalMode: ""\n', "iptables", "iptables", "ClusterCIDR"],
])("/configz tells of %j what %s decided at the start", (text, backend, mode, detectLocalMode) => {
  const file = { path: "c.yaml", text: `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${text}` };
  const { configz } = runConfig(loadConfig({ flags: {}, file, hostname: "host" }), { name: backend, ...MODES[backend] });
  expect(configz).toMatchObject({ "kubeproxy.config.k8s.io": { mode, detectLocalMode } });
});

describe("the addresses that Services may have", () => {
  const texts = (list: readonly { readonly text: string }[] | undefined): readonly string[] | undefined => list?.map(({ text }) => text);

  test.each<[RawFlags, readonly string[] | undefined, readonly string[] | undefined]>([
    [{}, undefined, undefined],
    [{ "allowed-external-ip-cidrs": "none" }, [], undefined],
    [
      { "allowed-external-ip-cidrs": "198.51.100.7/24,fd00::/8", "allowed-load-balancer-ip-cidrs": "0.0.0.0/0" },
      ["198.51.100.0/24", "fd00::/8"],
      ["0.0.0.0/0"],
    ],
    [{ "allowed-external-ip-cidrs": ["10.0.0.0/8", "fd00::/8,11.0.0.0/8"] }, ["10.0.0.0/8", "fd00::/8", "11.0.0.0/8"], undefined],
    [{ "allowed-external-ip-cidrs": ["none", "none"] }, [], undefined],
  ])("%j", (flags, externalIPs, loadBalancerIPs) => {
    const { allowedAddresses } = configure(flags);
    expect([texts(allowedAddresses.externalIPs), texts(allowedAddresses.loadBalancerIPs)]).toEqual([externalIPs, loadBalancerIPs]);
  });

  test.each(["", "198.51.100.1", "10.0.0.0/8,", "all", "10.0.0.0/8 fd00::/8"])("%j is refused in one line", (text) => {
    const read = (): RunConfig => configure({ "allowed-load-balancer-ip-cidrs": text });
    expect(read).toThrow(/^\[invalid_object\] ".*" is not a CIDR: --allowed-load-balancer-ip-cidrs: write CIDRs like .*, or none$/);
  });

  test.each<readonly [RawFlags, file: string | undefined, isStrict: boolean | undefined]>([
    [{}, "turnout: {strictSourceRanges: true}\n", true],
    [{ "strict-source-ranges": "false" }, "turnout: {strictSourceRanges: true}\n", undefined],
    [{ "strict-source-ranges": "true" }, undefined, true],
  ])("R-72 source ranges are strict by flag or file, and the flag has precedence: %j %j", (flags, file, isStrict) => {
    expect(configure(flags, file).allowedAddresses.strictSourceRanges).toBe(isStrict);
  });

  test.each<readonly [RawFlags, file: string | undefined, isStrict: boolean | undefined]>([
    [{}, "turnout: {strictExternalIPs: true}\n", true],
    [{ "strict-external-ips": "false" }, "turnout: {strictExternalIPs: true}\n", undefined],
    [{ "strict-external-ips": "true" }, undefined, true],
    [{ "strict-source-ranges": "true" }, undefined, undefined],
  ])("R-73 external IPs in use are refused by flag or file, and the flag has precedence: %j %j", (flags, file, isRefused) => {
    expect(configure(flags, file).allowedAddresses.strictExternalIPs).toBe(isRefused);
  });

  test("none and something are refused", () => {
    expect(() => configure({ "allowed-external-ip-cidrs": ["none", "10.0.0.0/8"] })).toThrow('"none" is not a CIDR');
  });

  test("count with a file as well, which has no field for them", () => {
    expect(texts(configure({ "allowed-external-ip-cidrs": "none" }, "mode: nftables\n").allowedAddresses.externalIPs)).toEqual([]);
  });
});

test("/flagz shows every flag as text: what was typed, else the default", () => {
  const { flagz } = configure({ "metrics-bind-address": "0.0.0.0", "masquerade-all": true, "nodeport-addresses": "10.0.0.0/8" }, undefined);
  expect(flagz).toMatchObject({
    "metrics-bind-address": "0.0.0.0",
    "masquerade-all": "true",
    "nodeport-addresses": "10.0.0.0/8",
    "ipvs-exclude-cidrs": "[]",
    "config-sync-period": "15m0s",
    profiling: "false",
  });
});

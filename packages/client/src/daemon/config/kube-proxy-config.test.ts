import { describe, expect, test } from "vitest";
import { parseKubeProxyConfig } from "./kube-proxy-config.ts";

const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

function given(body: string): unknown {
  return parseKubeProxyConfig(HEAD + body, "config.yaml").given;
}

/** Each line ten times the one before. */
const BOMB = [
  "a: &a [x,x,x,x,x,x,x,x,x,x]",
  ..."bcdef".split("").map((name, index) => `${name}: &${name} [${Array(10).fill(`*${"abcde"[index]}`).join(",")}]`),
].join("\n");

/** What kubeadm writes into its ConfigMap: null and zero values everywhere. */
const KUBEADM = `${HEAD}bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
  tcpBeLiberal: false
  tcpCloseWaitTimeout: null
  tcpEstablishedTimeout: null
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables:
  localhostNodePorts: null
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging:
  flushFrequency: 0
  options: {json: {infoBufferSize: "0"}}
  verbosity: 0
metricsBindAddress: ""
mode: ""
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: "", rootHnsEndpointName: "", sourceVip: ""}
`;

describe("parseKubeProxyConfig", () => {
  test("kubeadm's file is read without a warning, its zeros are not set", () => {
    const parsed = parseKubeProxyConfig(KUBEADM, "config.yaml");
    expect(parsed.warnings).toEqual([]);
    expect(parsed.given).toMatchObject({
      clusterCIDR: "10.244.0.0/16",
      "clientConnection.kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf",
    });
    for (const path of [
      "nftables.minSyncPeriod",
      "iptables.syncPeriod",
      "nftables.masqueradeBit",
      "healthzBindAddress",
      "configSyncPeriod",
    ] as const) {
      expect(parsed.given).not.toHaveProperty([path]);
    }
  });

  test("JSON is read too", () => {
    const text = '{"apiVersion":"kubeproxy.config.k8s.io/v1alpha1","kind":"KubeProxyConfiguration","oomScoreAdj":-500}';
    expect(parseKubeProxyConfig(text, "c.json").given).toEqual({ oomScoreAdj: -500 });
  });

  test.each([
    ["yes, which is true in the YAML that Kubernetes reads", "iptables: {masqueradeAll: yes}", { "iptables.masqueradeAll": true }],
    [
      "logging, which has sections of its own",
      "logging: {flushFrequency: 5000000000, options: {json: {splitStream: true}}}",
      { "logging.flushFrequency": 5_000, "logging.options.json.splitStream": true },
    ],
    ["a duration", "iptables: {syncPeriod: 1m30s}", { "iptables.syncPeriod": 90_000 }],
    ["a list", "nodePortAddresses: [primary, 10.0.0.0/8]", { nodePortAddresses: ["primary", "10.0.0.0/8"] }],
    ["bit 0, which is not a zero value", "nftables: {masqueradeBit: 0}", { "nftables.masqueradeBit": 0 }],
    ["feature gates", "featureGates: {A: true, B: false}", { featureGates: { A: true, B: false } }],
  ])("takes %s", (_name, body, expected) => {
    expect(given(body)).toEqual(expected);
  });

  test.each([
    ["an unknown field", "clusterCidr: 10.0.0.0/8", 'config.yaml: unknown field "clusterCidr" is ignored'],
    ["an unknown field of a section", "iptables: {masqueradebit: 1}", 'config.yaml: unknown field "iptables.masqueradebit" is ignored'],
    ["a name every object has", "constructor: 1", 'config.yaml: unknown field "constructor" is ignored'],
    ["a duplicate field", "mode: iptables\nmode: nftables", "config.yaml:4: duplicate field, the last one counts"],
    ["a second document", "mode: nftables\n---\nmode: iptables", "config.yaml:4: only the first document counts"],
  ])("warns of %s and goes on", (_name, body, warning) => {
    expect(parseKubeProxyConfig(HEAD + body, "config.yaml").warnings).toEqual([warning]);
  });

  test("of several documents the first one counts", () => {
    expect(given("mode: nftables\n---\nmode: iptables\n---\nfoo: [")).toEqual({ mode: "nftables" });
  });

  test("of duplicate fields the last one counts", () => {
    expect(given("mode: iptables\nmode: nftables")).toEqual({ mode: "nftables" });
  });

  test.each([
    ["a fraction for a bit", "nftables: {masqueradeBit: 1.5}", "expected a whole number, found 1.5"],
    ["text for a bit", 'iptables: {masqueradeBit: "14"}', 'expected a whole number, found "14"'],
    ["a number for a duration", "iptables: {syncPeriod: 30}", "expected text, found 30"],
    ["a section that is no map", "iptables: 3", "expected a map"],
    ["a list of numbers", "nodePortAddresses: [1]", "expected text, found 1"],
    ["a gate that is no switch", "featureGates: {A: 1}", "expected true or false"],
  ])("refuses %s", (_name, body, message) => {
    expect(() => given(body)).toThrow(message);
  });

  test.each([
    ["another kind", "apiVersion: v1\nkind: Service\n", "found v1 Service: config.yaml"],
    ["no kind", "mode: iptables\n", "found no apiVersion no kind"],
    ["another version", "apiVersion: kubeproxy.config.k8s.io/v1beta1\nkind: KubeProxyConfiguration\n", "v1beta1"],
    ["broken YAML, with its line", `${HEAD}mode: [`, /not readable as YAML or JSON \([^:]*\): config\.yaml:\d+$/],
    ["nothing", "", "found no KubeProxyConfiguration: config.yaml: write a KubeProxyConfiguration"],
    ["aliases that grow without bound", `${HEAD}${BOMB}`, "[invalid_object] not readable as YAML (Excessive alias count"],
    ["an alias that leads nowhere", `${HEAD}mode: *nowhere`, "[invalid_object] not readable as YAML"],
  ])("refuses %s", (_name, text, message) => {
    expect(() => parseKubeProxyConfig(text, "config.yaml")).toThrow(message);
  });
});

import { canonicalIP, NODE_PORT_KEYWORDS } from "@turnout/core";
import { parseBindAddress } from "./bind-address.ts";
import {
  ANY_BY_NAME,
  cidrOf,
  DURATION,
  DURATION_OR_NS,
  INTEGER,
  LEVEL,
  LIST,
  MODULES,
  NUMBER,
  QUANTITY,
  SWITCH,
  SWITCHES,
  TEXT,
  type ValueKind,
} from "./config-kinds.ts";
import type { ConfigPath, ConfigValues, VModuleItem } from "./config-values.ts";
import { wrongGate } from "./gates/feature-gates.ts";
import { KUBE_PROXY_VERSION } from "./gen/kube-proxy-gates.ts";

/** One row of the configuration table: file field, flag, default and check in one place. */
export interface Field<T> {
  readonly kind: ValueKind<T>;
  readonly fallback: T;
  /** Flag name without dashes; absent: file only. */
  readonly flag?: string;
  readonly help?: string;
  /** Where "" or 0 in a file means "not set", as kube-proxy's defaulting reads it. */
  readonly zeroIsUnset?: true;
  /** What "" for the flag means, where it is no value: "unset" takes back what the flag said before, "unheard" doesn't, as in kube-proxy. */
  readonly emptyFlag?: "unset" | "unheard";
  /** Accepted and checked, but nothing here reads it; said once when somebody sets it. */
  readonly hasNoEffect?: true;
  /** What is wrong with a value, e.g. `must be 0 to 31`, or, for lists and maps, with what in it; undefined when it is fine. */
  check?(value: T): string | undefined;
}

const HEALTHZ_PORT = 10_256;
const METRICS_PORT = 10_249;
const HOUR_MS = 3_600_000;
/** kube-proxy's words for backends; "": chosen at the start. */
export const MODES: readonly string[] = ["", "iptables", "ipvs", "nftables", "kernelspace"];
const DETECT_LOCAL_MODES: readonly string[] = ["", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"];

function between(low: number, high: number): (value: number) => string | undefined {
  return (value) => (value >= low && value <= high ? undefined : `must be ${low} to ${high}`);
}

function notNegative(value: number): string | undefined {
  return value >= 0 ? undefined : "must not be negative";
}

function positive(value: number): string | undefined {
  return value > 0 ? undefined : "must be greater than 0";
}

function anIP(value: string): string | undefined {
  return canonicalIP(value) === undefined ? "must be an IP address" : undefined;
}

function bindable(defaultPort: number): (value: string) => string | undefined {
  return (value) =>
    value === "" || parseBindAddress(value, defaultPort) !== undefined ? undefined : "must be IP:port with a port of 1 to 65535";
}

function oneOf(words: readonly string[]): (value: string) => string | undefined {
  return (value) => (words.includes(value) ? undefined : `must be one of ${words.map((word) => word || '""').join(", ")}`);
}

function allCIDRs(values: readonly string[]): string | undefined {
  const wrong = values.find((value) => cidrOf(value) === undefined);
  return wrong === undefined ? undefined : `"${wrong}" is not a CIDR like 10.0.0.0/8`;
}

function nodePortAddresses(values: readonly string[]): string | undefined {
  return allCIDRs(values.filter((value) => !NODE_PORT_KEYWORDS.has(value)));
}

/** The oldest minor version whose hidden metrics a kube-proxy that is in use may be asked for. */
const OLDEST_MINOR = 28;

/** kube-proxy takes the minor version before its own, and no other. Here it has no effect, so a file of an older kube-proxy is taken, too. */
function previousVersion(value: string): string | undefined {
  const newest = Number(KUBE_PROXY_VERSION.split(".")[1]) - 1;
  const [, minor] = /^1\.(\d+)$/.exec(value) ?? [];
  const isRight = value === "" || (Number(minor) >= OLDEST_MINOR && Number(minor) <= newest);
  return isRight ? undefined : `must be left out, or 1.${OLDEST_MINOR} to 1.${newest}`;
}

function modules(values: readonly VModuleItem[]): string | undefined {
  const wrong = values.find(({ filePattern }) => filePattern === "" || /[=,]/.test(filePattern));
  return wrong === undefined ? undefined : `"${wrong.filePattern}" is no pattern of file names`;
}

const syncPeriod = { kind: DURATION, fallback: 30_000, zeroIsUnset: true, check: positive } as const;
// kube-proxy writes 0s for "not set" (kubeadm's file does); its own default is 1s, ours is shorter because an incremental sync is cheap.
const minSyncPeriod = { kind: DURATION, fallback: 100, zeroIsUnset: true, check: notNegative } as const;
const masqueradeBit = { kind: INTEGER, fallback: 14, check: between(0, 31) } as const;

/**
 * Every field of KubeProxyConfiguration v1alpha1, and of Turnout's section, with its flag, default and check.
 * @source kube-proxy apis/config/v1alpha1/defaults.go and apis/config/validation
 */
export const FIELDS: { readonly [P in ConfigPath]: Field<ConfigValues[P]> } = {
  featureGates: { kind: SWITCHES, fallback: {}, flag: "feature-gates", check: wrongGate },
  "clientConnection.kubeconfig": { kind: TEXT, fallback: "", flag: "kubeconfig", help: "file that says how to reach the API server" },
  "clientConnection.acceptContentTypes": { kind: TEXT, fallback: "", hasNoEffect: true },
  "clientConnection.contentType": { kind: TEXT, fallback: "application/json", flag: "kube-api-content-type", hasNoEffect: true },
  "clientConnection.qps": { kind: NUMBER, fallback: 5, flag: "kube-api-qps", zeroIsUnset: true, hasNoEffect: true },
  "clientConnection.burst": {
    kind: INTEGER,
    fallback: 10,
    flag: "kube-api-burst",
    zeroIsUnset: true,
    hasNoEffect: true,
    check: notNegative,
  },
  "logging.format": {
    kind: TEXT,
    // Not "text" as in kube-proxy: nobody chose, so it depends on who reads along.
    fallback: "",
    flag: "logging-format",
    zeroIsUnset: true,
    check: oneOf(["text", "json"]),
    help: "text or json (default: text on a terminal)",
  },
  "logging.flushFrequency": {
    kind: DURATION_OR_NS,
    fallback: 5_000,
    flag: "log-flush-frequency",
    zeroIsUnset: true,
    check: positive,
    hasNoEffect: true,
  },
  "logging.verbosity": { kind: LEVEL, fallback: 0, flag: "v" },
  "logging.vmodule": { kind: MODULES, fallback: [], flag: "vmodule", check: modules, hasNoEffect: true },
  "logging.options.text.splitStream": { kind: SWITCH, fallback: false, flag: "log-text-split-stream", hasNoEffect: true },
  "logging.options.text.infoBufferSize": {
    kind: QUANTITY,
    fallback: "0",
    flag: "log-text-info-buffer-size",
    zeroIsUnset: true,
    hasNoEffect: true,
  },
  "logging.options.json.splitStream": { kind: SWITCH, fallback: false, flag: "log-json-split-stream", hasNoEffect: true },
  "logging.options.json.infoBufferSize": {
    kind: QUANTITY,
    fallback: "0",
    flag: "log-json-info-buffer-size",
    zeroIsUnset: true,
    hasNoEffect: true,
  },
  hostnameOverride: {
    kind: TEXT,
    fallback: "",
    flag: "hostname-override",
    emptyFlag: "unset",
    help: "this node's name (default: the host's name)",
  },
  bindAddress: {
    kind: TEXT,
    fallback: "0.0.0.0",
    flag: "bind-address",
    zeroIsUnset: true,
    emptyFlag: "unheard",
    check: anIP,
    help: "the node IP to use for its family, and the primary family; unspecified: the Node object's",
  },
  healthzBindAddress: {
    kind: TEXT,
    fallback: "",
    flag: "healthz-bind-address",
    zeroIsUnset: true,
    check: bindable(HEALTHZ_PORT),
    help: `IP:port for /healthz and /livez (default 0.0.0.0:${HEALTHZ_PORT}); "" turns it off`,
  },
  metricsBindAddress: {
    kind: TEXT,
    fallback: "",
    flag: "metrics-bind-address",
    zeroIsUnset: true,
    check: bindable(METRICS_PORT),
    help: `IP:port for /metrics, /proxyMode and /configz (default 127.0.0.1:${METRICS_PORT}); "" turns it off`,
  },
  bindAddressHardFail: {
    kind: SWITCH,
    fallback: false,
    flag: "bind-address-hard-fail",
    help: "exit when a health or metrics address can't be bound, instead of trying again",
  },
  enableProfiling: {
    kind: SWITCH,
    fallback: false,
    flag: "profiling",
    help: "answer /debug/pprof/ beside /metrics: CPU and heap profiles",
  },
  showHiddenMetricsForVersion: {
    kind: TEXT,
    fallback: "",
    flag: "show-hidden-metrics-for-version",
    check: previousVersion,
    hasNoEffect: true,
  },
  mode: { kind: TEXT, fallback: "", flag: "proxy-mode", check: oneOf(MODES), help: "kube-proxy's name of the backend; --backend beats it" },
  "iptables.masqueradeBit": { ...masqueradeBit, flag: "iptables-masquerade-bit" },
  "iptables.masqueradeAll": {
    kind: SWITCH,
    fallback: false,
    flag: "masquerade-all",
    help: "masquerade all traffic to service cluster IPs",
  },
  "iptables.localhostNodePorts": { kind: SWITCH, fallback: true, flag: "iptables-localhost-nodeports" },
  "iptables.syncPeriod": {
    ...syncPeriod,
    flag: "iptables-sync-period",
    help: "wait after a failed sync, and half the health timeout (default 30s)",
  },
  "iptables.minSyncPeriod": { ...minSyncPeriod, flag: "iptables-min-sync-period", help: "shortest time between syncs (default 100ms)" },
  "ipvs.syncPeriod": { ...syncPeriod, flag: "ipvs-sync-period" },
  "ipvs.minSyncPeriod": { ...minSyncPeriod, flag: "ipvs-min-sync-period" },
  "ipvs.scheduler": { kind: TEXT, fallback: "", flag: "ipvs-scheduler" },
  "ipvs.excludeCIDRs": { kind: LIST, fallback: [], flag: "ipvs-exclude-cidrs", check: allCIDRs },
  "ipvs.strictARP": { kind: SWITCH, fallback: false, flag: "ipvs-strict-arp" },
  "ipvs.tcpTimeout": { kind: DURATION, fallback: 0, flag: "ipvs-tcp-timeout", check: notNegative },
  "ipvs.tcpFinTimeout": { kind: DURATION, fallback: 0, flag: "ipvs-tcpfin-timeout", check: notNegative },
  "ipvs.udpTimeout": { kind: DURATION, fallback: 0, flag: "ipvs-udp-timeout", check: notNegative },
  "nftables.masqueradeBit": masqueradeBit,
  "nftables.masqueradeAll": { kind: SWITCH, fallback: false },
  "nftables.syncPeriod": syncPeriod,
  "nftables.minSyncPeriod": minSyncPeriod,
  "winkernel.networkName": { kind: TEXT, fallback: "", flag: "network-name" },
  "winkernel.sourceVip": { kind: TEXT, fallback: "", flag: "source-vip" },
  "winkernel.rootHnsEndpointName": { kind: TEXT, fallback: "", flag: "root-hnsendpoint-name" },
  "winkernel.enableDSR": { kind: SWITCH, fallback: false, flag: "enable-dsr" },
  "winkernel.forwardHealthCheckVip": { kind: SWITCH, fallback: false, flag: "forward-healthcheck-vip" },
  windowsRunAsService: { kind: SWITCH, fallback: false, flag: "windows-service", hasNoEffect: true },
  detectLocalMode: {
    kind: TEXT,
    fallback: "",
    flag: "detect-local-mode",
    check: oneOf(DETECT_LOCAL_MODES),
    help: "how a pod's packets are recognised: ClusterCIDR (default), NodeCIDR, BridgeInterface or InterfaceNamePrefix",
  },
  "detectLocal.bridgeInterface": { kind: TEXT, fallback: "", flag: "pod-bridge-interface", help: "the bridge of mode BridgeInterface" },
  "detectLocal.interfaceNamePrefix": {
    kind: TEXT,
    fallback: "",
    flag: "pod-interface-name-prefix",
    help: "the prefix of mode InterfaceNamePrefix",
  },
  clusterCIDR: { kind: TEXT, fallback: "", flag: "cluster-cidr", help: "pod CIDR of the cluster, or one of each family with a comma" },
  nodePortAddresses: {
    kind: LIST,
    fallback: [],
    flag: "nodeport-addresses",
    check: nodePortAddresses,
    help: "CIDRs, or primary, localhost, all: the node addresses that answer node ports (default: the backend's)",
  },
  oomScoreAdj: {
    kind: INTEGER,
    fallback: -999,
    flag: "oom-score-adj",
    check: between(-1000, 1000),
    help: "this process's oom_score_adj, -1000 to 1000 (default -999)",
  },
  "conntrack.maxPerCore": {
    kind: INTEGER,
    fallback: 32_768,
    flag: "conntrack-max-per-core",
    check: notNegative,
    help: "connections that conntrack remembers, for each core (default 32768); 0 leaves the limit as it is",
  },
  "conntrack.min": {
    kind: INTEGER,
    fallback: 131_072,
    flag: "conntrack-min",
    check: notNegative,
    help: "connections that conntrack remembers at least (default 131072)",
  },
  "conntrack.tcpEstablishedTimeout": {
    kind: DURATION,
    fallback: 24 * HOUR_MS,
    flag: "conntrack-tcp-timeout-established",
    check: notNegative,
    help: "how long conntrack remembers an idle TCP connection (default 24h); 0 leaves it as it is",
  },
  "conntrack.tcpCloseWaitTimeout": {
    kind: DURATION,
    fallback: HOUR_MS,
    flag: "conntrack-tcp-timeout-close-wait",
    check: notNegative,
    help: "the same in CLOSE_WAIT (default 1h)",
  },
  "conntrack.tcpBeLiberal": {
    kind: SWITCH,
    fallback: false,
    flag: "conntrack-tcp-be-liberal",
    help: "let conntrack accept TCP packets outside of their window",
  },
  "conntrack.udpTimeout": {
    kind: DURATION,
    fallback: 0,
    flag: "conntrack-udp-timeout",
    check: notNegative,
    help: "how long conntrack remembers a UDP flow without an answer; 0 leaves it as it is",
  },
  "conntrack.udpStreamTimeout": {
    kind: DURATION,
    fallback: 0,
    flag: "conntrack-udp-timeout-stream",
    check: notNegative,
    help: "the same of one with answers",
  },
  configSyncPeriod: {
    kind: DURATION,
    fallback: HOUR_MS / 4,
    flag: "config-sync-period",
    zeroIsUnset: true,
    check: positive,
    hasNoEffect: true,
  },
  portRange: { kind: TEXT, fallback: "", hasNoEffect: true },
  // Not kube-proxy's, which warns of the unknown section and goes on. What each option is decides the backend.
  "turnout.backendOptions": { kind: ANY_BY_NAME, fallback: {} },
  // Not kube-proxy's, either. The flags of these names count next to a file.
  "turnout.strictSourceRanges": { kind: SWITCH, fallback: false },
  "turnout.strictExternalIPs": { kind: SWITCH, fallback: false },
};

/** All paths in the table's order. */
export const PATHS: readonly ConfigPath[] = Object.keys(FIELDS) as ConfigPath[];

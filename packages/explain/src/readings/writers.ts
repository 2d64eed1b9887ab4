import type { IptablesTable } from "../tables/iptables-names.ts";
import type { FoundProcess } from "./processes.ts";
import { MARKER_CHAIN } from "@turnout/host/iptables/text";

/** What sort of program writes rules. */
export type WriterKind = "proxy" | "firewall" | "network" | "containers" | "kubelet";

/** A program that writes rules on this host, or left some. */
export interface Writer {
  /** E.g. `kube-proxy`, `firewalld`, `Calico`. */
  readonly name: string;
  readonly kind: WriterKind;
  /** What shows it, e.g. `process kube-proxy (pid 812)`, `table inet firewalld`, `chain FLANNEL-FWD of ip filter (nft)`. */
  readonly traces: readonly string[];
  /** A process of it runs in this network namespace. */
  readonly isRunning: boolean;
  /** Its processes. */
  readonly pids: readonly number[];
  /** Processes of it that were stopped (SIGSTOP). */
  readonly stopped: readonly number[];
}

interface Signature {
  readonly name: string;
  readonly kind: WriterKind;
  readonly process?: RegExp;
  /** Told from what it was started with, of a process that `process` names. */
  readonly command?: RegExp;
  readonly device?: RegExp;
  readonly chain?: RegExp;
  /** A table of nft, without its family. */
  readonly table?: RegExp;
}

const KUBELET = "kubelet";
/** Who makes the chain that both have. */
const EITHER = "kubelet or an iptables proxy";

/** What every iptables proxy has. */
const PROXY_CHAIN = "KUBE-SERVICES";

/** How Node calls the process that it is. */
const MAIN_THREAD = "MainThread";

/** Tables of nft that Turnout's backends make. */
const OWN_TABLE = /^turnout/;

/** Tell whether a table of nft is one of ours. Pure. */
export function isOwnTable(table: string): boolean {
  return OWN_TABLE.test(table);
}

const KUBELET_ITSELF: Signature = {
  name: KUBELET,
  kind: "kubelet",
  process: /^kubelet$/,
  chain: /^KUBE-(?:KUBELET-CANARY|IPTABLES-HINT)$/,
};

/** Programs that write rules where service proxies work, with what they are known by. The first that fits names a trace. */
const SIGNATURES: readonly Signature[] = [
  {
    name: "Turnout",
    kind: "proxy",
    process: /^(?:MainThread|node|turnout.*)$/,
    command: /(?:@turnout|packages)\/(?:cli\/\S*main\.[jt]s .*\brun\b|backend-[\w-]+\/\S*main\.[jt]s)/,
    device: /^turnout0$/,
    chain: new RegExp(`^${MARKER_CHAIN}$`),
    table: OWN_TABLE,
  },
  {
    name: "kube-router",
    kind: "network",
    process: /^kube-router$/,
    device: /^kube-(?:bridge|dummy-if)$/,
    chain: /^KUBE-(?:ROUTER|NWPLCY|POD-FW)-/,
  },
  KUBELET_ITSELF,
  { name: EITHER, kind: "kubelet", chain: /^KUBE-FIREWALL$/ },
  {
    name: "kube-proxy",
    kind: "proxy",
    process: /^kube-proxy$/,
    device: /^kube-ipvs0$/,
    chain: /^KUBE-(?:SERVICES|NODEPORTS|PROXY-CANARY|PROXY-FIREWALL)$/,
    table: /^kube-proxy$/,
  },
  {
    name: "Cilium",
    kind: "network",
    process: /^cilium-(?:agent|dae.*)$/,
    device: /^cilium_(?:host|net|vxlan)$/,
    chain: /^(?:OLD_)?CILIUM_/,
  },
  {
    name: "Calico",
    kind: "network",
    process: /^(?:calico-node|calico-felix)$/,
    device: /^(?:cali[0-9a-f]{11}|vxlan\.calico|vxlan-v6\.calico|bpfin\.cali)$/,
    chain: /^cali-/,
    table: /^calico$/,
  },
  {
    name: "flannel",
    kind: "network",
    process: /^flanneld$/,
    device: /^flannel(?:\.\d+|-v6\.\d+|-wg)$/,
    chain: /^FLANNEL-/,
    table: /^flannel-ipv[46]$/,
  },
  { name: "portmap (CNI)", kind: "network", chain: /^CNI-(?:HOSTPORT|DN)-/, table: /^cni_hostport$/ },
  {
    name: "CNI bridge",
    kind: "network",
    device: /^cni0$/,
    chain: /^CNI-(?:[0-9a-f]{8,}|FORWARD|ADMIN)/,
    table: /^cni_plugins_masquerade$/,
  },
  { name: "Weave Net", kind: "network", process: /^weaver$/, device: /^weave$/, chain: /^WEAVE(?:-|$)/ },
  { name: "Antrea", kind: "network", process: /^antrea-agent$/, device: /^antrea-gw0$/, chain: /^ANTREA-/, table: /^antrea/ },
  {
    name: "OVN-Kubernetes",
    kind: "network",
    process: /^ovnkube.*$/,
    device: /^ovn-k8s-mp0$/,
    chain: /^OVN-KUBE-/,
    table: /^ovn-kubernetes$/,
  },
  { name: "kube-network-policies", kind: "network", table: /^kube-network-policies/ },
  { name: "NodeLocal DNSCache", kind: "network", process: /^node-cache$/, device: /^nodelocaldns$/ },
  {
    name: "firewalld",
    kind: "firewall",
    process: /^firewalld$/,
    chain:
      /^(?:IN|FWD[IO]?|POST|PRE)_(?:public|ZONES|POLICIES|direct)|^(?:INPUT|FORWARD(?:_IN|_OUT)?|PREROUTING|POSTROUTING)_(?:ZONES|direct|POLICIES_(?:pre|post))$/,
    table: /^firewalld(?:_|$)/,
  },
  { name: "ufw", kind: "firewall", chain: /^ufw6?-/ },
  { name: "fail2ban", kind: "firewall", process: /^fail2ban-server$/, chain: /^f2b-/, table: /^f2b-table$/ },
  { name: "Tailscale", kind: "firewall", process: /^tailscaled$/, device: /^tailscale0$/, chain: /^ts-(?:forward|input|postrouting)$/ },
  { name: "Docker", kind: "containers", process: /^dockerd$/, device: /^docker0$/, chain: /^DOCKER(?:-|$)/, table: /^docker-bridges/ },
  { name: "Podman", kind: "containers", device: /^podman\d+$/, chain: /^NETAVARK/, table: /^netavark$/ },
  {
    name: "libvirt",
    kind: "containers",
    process: /^(?:libvirtd|virtnetworkd)$/,
    device: /^virbr\d+$/,
    chain: /^LIBVIRT_/,
    table: /^libvirt_network$/,
  },
  { name: "keepalived", kind: "proxy", process: /^keepalived$/ },
];

/** Traces of one program that are told, at most. */
const TRACES_MAX = 6;

/** What writers are told from. */
export interface Traces {
  readonly processes: readonly FoundProcess[];
  /** Names of devices. */
  readonly devices: readonly string[];
  /** Tables of nft that iptables has not made, `FAMILY NAME`. */
  readonly tables: readonly string[];
  readonly iptables: readonly IptablesTable[];
}

/** Tell whether a process of this name may be one that writes rules: its command is worth reading. Pure. */
export function mayWriteRules(name: string): boolean {
  return SIGNATURES.some(({ process }) => process?.test(name) === true);
}

/** Tell whether a process is a Turnout that serves. Pure. */
export function isTurnout(process: FoundProcess): boolean {
  return SIGNATURES.some((signature) => signature.name === "Turnout" && isOf(process, signature));
}

/**
 * Say which programs write rules on this host, or have left some. Pure.
 *
 * Edges: chains that kube-proxy and Turnout make alike are Turnout's where its marker is in the same table. What kubelet and proxies make alike is the
 * proxy's where its chains are and nothing of kubelet is.
 */
export function writersOf(traces: Traces): readonly Writer[] {
  const found = new Map<string, { kind: WriterKind; traces: string[]; isRunning: boolean; pids: number[]; stopped: number[] }>();
  const note = ({ name, kind }: Pick<Signature, "name" | "kind">, trace: string, isRunning = false): void => {
    const one = found.get(name) ?? { kind, traces: [], isRunning: false, pids: [], stopped: [] };
    one.traces.push(trace);
    found.set(name, { ...one, isRunning: one.isRunning || isRunning });
  };
  const nameOf = (fits: (signature: Signature) => boolean): Signature | undefined => SIGNATURES.find(fits);
  const running = new Map(traces.processes.map((process) => [process.pid, nameOf((each) => isOf(process, each))]));
  for (const { pid, name, parent, isStopped } of traces.processes) {
    const one = running.get(pid);
    // A launcher and its child are one program.
    if (one !== undefined && running.get(parent) !== one) note(one, `process ${name === MAIN_THREAD ? "node" : name} (pid ${pid})`, true);
    if (one !== undefined) found.get(one.name)?.pids.push(pid);
    if (one !== undefined && isStopped) found.get(one.name)?.stopped.push(pid);
  }
  for (const table of traces.tables) {
    const one = nameOf((each) => each.table?.test(table.slice(table.indexOf(" ") + 1)) === true);
    if (one !== undefined) note(one, `table ${table}`);
  }
  const hasKubelet =
    found.has(KUBELET) || traces.iptables.some(({ names }) => names.some((name) => KUBELET_ITSELF.chain?.test(name) === true));
  for (const { family, table, variant, names } of ownersFirst(traces.iptables)) {
    const inNat = traces.iptables.find((one) => one.variant === variant && one.family === family && one.table === "nat")?.names ?? [];
    const [hasMarker, hasProxy] = [inNat.includes(MARKER_CHAIN), inNat.includes(PROXY_CHAIN)];
    const reported = new Set<string>();
    for (const chain of names) {
      const fitting = nameOf((each) => each.chain?.test(chain) === true);
      const one = fitting?.name === EITHER && hasKubelet ? KUBELET_ITSELF : fitting;
      if (one === undefined || reported.has(one.name) || (one.name === "kube-proxy" && hasMarker) || (one.name === EITHER && hasProxy))
        continue;
      reported.add(one.name);
      note(one, `chain ${chain} in ${family === "IPv4" ? "ip" : "ip6"} ${table} (${variant})`);
    }
  }
  for (const device of traces.devices) {
    const one = nameOf((each) => each.device?.test(device) === true);
    // Turnout keeps kube-proxy's device, as it keeps its chains.
    if (one !== undefined && !(one.name === "kube-proxy" && found.has("Turnout"))) note(one, `device ${device}`);
  }
  return Array.from(found, ([name, one]) => ({ name, ...one, traces: one.traces.slice(0, TRACES_MAX) }));
}

function isOf({ name, command }: FoundProcess, { process, command: started }: Signature): boolean {
  return process?.test(name) === true && (started === undefined || started.test(command));
}

/** nat first: what is there tells most. */
function ownersFirst(tables: readonly IptablesTable[]): readonly IptablesTable[] {
  return tables.toSorted((a, b) => Number(b.table === "nat") - Number(a.table === "nat"));
}

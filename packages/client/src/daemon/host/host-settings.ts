/** What kube-proxy sets on a node besides rules. */
export interface HostSettings {
  readonly conntrack: ConntrackSettings;
  /** -1000 to 1000. */
  readonly oomScoreAdj: number;
}

/** Section `conntrack` of kube-proxy's configuration; times are in ms, and 0 leaves a parameter as it is. */
export interface ConntrackSettings {
  /** 0 leaves the size of the table as it is, whatever `min` says. */
  readonly maxPerCore: number;
  readonly min: number;
  readonly tcpEstablishedTimeoutMs: number;
  readonly tcpCloseWaitTimeoutMs: number;
  /** False leaves it as it is. */
  readonly tcpBeLiberal: boolean;
  readonly udpTimeoutMs: number;
  readonly udpStreamTimeoutMs: number;
}

/** What a file of the kernel should say. */
export interface HostSetting {
  /** As operators call it, e.g. `net.netfilter.nf_conntrack_max`. */
  readonly name: string;
  readonly path: string;
  readonly value: number;
  /** A larger number is as good. */
  readonly isLeast?: true;
}

/** Beyond this the table would take too much memory on machines with many cores. @source kube-proxy pkg/proxy/conntrack/sysctls.go getConntrackMax */
const MAX_LIMIT = 1_048_576;

/** Entries of the conntrack table; undefined: as it is. */
function conntrackMax({ maxPerCore, min }: ConntrackSettings, cores: number): number | undefined {
  if (maxPerCore === 0) return undefined;
  const scaled = maxPerCore * cores;
  return scaled > MAX_LIMIT ? MAX_LIMIT : Math.max(scaled, min);
}

/**
 * Say what a node's files of the kernel should be, in the order in which kube-proxy writes them. Pure.
 *
 * Shape: `cores` are those of the machine, also where this process may use fewer.
 * @source kube-proxy pkg/proxy/conntrack/sysctls.go setSysctls, SetMax; cmd/kube-proxy/app/server.go Run
 */
export function wantedSettings({ conntrack, oomScoreAdj }: HostSettings, cores: number): readonly HostSetting[] {
  const max = conntrackMax(conntrack, cores);
  const timeout = (name: string, ms: number): readonly HostSetting[] => (ms > 0 ? [netfilter(name, Math.floor(ms / 1000))] : []);
  return [
    ...(max === undefined ? [] : [{ ...netfilter("max", max), isLeast: true as const }, hashSize(Math.floor(max / 4))]),
    ...timeout("tcp_timeout_established", conntrack.tcpEstablishedTimeoutMs),
    ...timeout("tcp_timeout_close_wait", conntrack.tcpCloseWaitTimeoutMs),
    ...(conntrack.tcpBeLiberal ? [netfilter("tcp_be_liberal", 1)] : []),
    ...timeout("udp_timeout", conntrack.udpTimeoutMs),
    ...timeout("udp_timeout_stream", conntrack.udpStreamTimeoutMs),
    { name: "oom_score_adj", path: "/proc/self/oom_score_adj", value: oomScoreAdj },
  ];
}

function netfilter(name: string, value: number): HostSetting {
  return { name: `net.netfilter.nf_conntrack_${name}`, path: `/proc/sys/net/netfilter/nf_conntrack_${name}`, value };
}

/** Chains of conntrack's hash table have four entries then. */
function hashSize(value: number): HostSetting {
  return { name: "nf_conntrack.hashsize", path: "/sys/module/nf_conntrack/parameters/hashsize", value, isLeast: true };
}

/** Tell whether a file that says `text` has to be written. Pure. */
export function differs({ value, isLeast }: HostSetting, text: string): boolean {
  const found = Number(text);
  return isLeast === true ? !(found >= value) : found !== value;
}

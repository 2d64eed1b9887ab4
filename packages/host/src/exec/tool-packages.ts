/**
 * The Debian package that holds each program Turnout may call: the one place that knows, for hints, doctor and host set-up.
 *
 * Shape: program name → package name.
 */
export const TOOL_PACKAGES: Readonly<Record<string, string>> = {
  bpftool: "bpftool",
  bridge: "iproute2",
  conntrack: "conntrack",
  curl: "curl",
  ethtool: "ethtool",
  ip: "iproute2",
  ip6tables: "iptables",
  "ip6tables-restore": "iptables",
  "ip6tables-save": "iptables",
  ipset: "ipset",
  iptables: "iptables",
  "iptables-restore": "iptables",
  "iptables-save": "iptables",
  ipvsadm: "ipvsadm",
  modprobe: "kmod",
  nft: "nftables",
  nsenter: "util-linux",
  ping: "iputils-ping",
  setpriv: "util-linux",
  ss: "iproute2",
  sysctl: "procps",
  tc: "iproute2",
  tcpdump: "tcpdump",
  unshare: "util-linux",
};

/**
 * Say how to get a program, in the words of an error hint.
 *
 * Edges: a path is judged by its last part; an unknown program gets a general answer. Whoever runs an image of one backend can install nothing in it.
 */
export function installHint(file: string): string {
  const tool = file.slice(file.lastIndexOf("/") + 1);
  const name = Object.hasOwn(TOOL_PACKAGES, tool) ? TOOL_PACKAGES[tool] : undefined;
  return name === undefined
    ? `install ${tool} or put it on PATH`
    : `install it: apt-get install ${name}; in a container, use the image with all backends`;
}

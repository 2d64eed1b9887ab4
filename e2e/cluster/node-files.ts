import { stringify } from "yaml";

/** What a node's programs have to know. */
export interface NodeFacts {
  readonly name: string;
  /** The primary family's first. */
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
  /** Path of the authority whose client certificates the kubelet accepts. */
  readonly ca: string;
  /** IP of CoreDNS. */
  readonly dns: string;
  /** The image of sandboxes. */
  readonly pause: string;
}

/** The files of a node that its first process reads, by name. Pure. */
export function nodeFiles(facts: NodeFacts): Readonly<Record<string, string>> {
  return {
    hosts: `127.0.0.1 localhost\n::1 localhost\n${facts.addresses.map((address) => `${address} ${facts.name}\n`).join("")}`,
    // Nothing outside of the cluster has names.
    "resolv.conf": "nameserver 127.0.0.1\n",
    "cni.conflist": JSON.stringify(network(facts)),
    "containerd.toml": containerd(facts.pause),
    "kubelet.yaml": stringify(kubelet(facts)),
  };
}

function network({ podCIDRs }: NodeFacts): object {
  const ipam = {
    type: "host-local",
    dataDir: "/run/cni-ipam",
    routes: podCIDRs.map((cidr) => ({ dst: cidr.includes(":") ? "::/0" : "0.0.0.0/0" })),
    ranges: podCIDRs.map((subnet) => [{ subnet }]),
  };
  return {
    cniVersion: "0.4.0",
    name: "turnout",
    plugins: [
      // Nothing is masqueraded: whatever is, is the service proxy's doing.
      { type: "ptp", ipMasq: false, mtu: 1_500, ipam },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

function containerd(pause: string): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pause}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
`;
}

function kubelet({ ca, dns }: NodeFacts): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    failCgroupV1: false,
    cgroupDriver: "cgroupfs",
    cgroupRoot: "/",
    enforceNodeAllocatable: [],
    failSwapOn: false,
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false }, x509: { clientCAFile: ca } },
    authorization: { mode: "AlwaysAllow" },
    clusterDNS: [dns],
    clusterDomain: "cluster.local",
    resolvConf: "/etc/resolv.conf",
    // The disk is the machine's, and others fill it.
    evictionHard: Object.fromEntries(
      ["memory.available", "nodefs.available", "imagefs.available", "nodefs.inodesFree"].map((signal) => [signal, "0%"]),
    ),
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    localStorageCapacityIsolation: false,
    nodeStatusUpdateFrequency: "5s",
    oomScoreAdj: 0,
    serializeImagePulls: false,
  };
}

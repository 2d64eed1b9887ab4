import { readFileSync } from "node:fs";
import { fill } from "./kubectl.ts";

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

/** The files of a node that its first process reads, by name. */
export function nodeFiles(facts: NodeFacts): Readonly<Record<string, string>> {
  const values = { CA: facts.ca, DNS: facts.dns, PAUSE: facts.pause };
  const filled = (name: string): string => fill(readFileSync(new URL(name, import.meta.url), "utf8"), values);
  return {
    hosts: `127.0.0.1 localhost\n::1 localhost\n${facts.addresses.map((address) => `${address} ${facts.name}\n`).join("")}`,
    // Nothing outside of the cluster has names.
    "resolv.conf": "nameserver 127.0.0.1\n",
    "cni.conflist": JSON.stringify(network(facts)),
    "containerd.toml": filled("containerd.toml"),
    "kubelet.yaml": filled("kubelet.yaml"),
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

import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";

const CONFIG = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ""
clusterCIDR: 10.244.0.0/16
iptables: {masqueradeAll: true, masqueradeBit: 17}
`;
const OBJECTS = `apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDRs: ['10.244.1.0/24']}
status: {addresses: [{type: InternalIP, address: '192.0.2.10'}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: ['10.244.1.5'], nodeName: node-a, conditions: {ready: true}}]
`;

/** A node with a client at its link and an endpoint behind another; what the client gets at two addresses, one of which came later. */
const STAGE = `set -e
ip link add client type veth peer name eth0; ip link add pod type veth peer name pod0
ip netns add "$C"; ip netns add "$P"; trap 'ip netns del "$C"; ip netns del "$P"' EXIT
ip link set client netns "$C"; ip link set pod netns "$P"
ip address add 192.0.2.10/24 dev eth0; ip link set eth0 up; ip address add 10.244.1.1/24 dev pod0; ip link set pod0 up
ip -n "$C" address add 192.0.2.20/24 dev client; ip -n "$C" link set client up
ip -n "$P" address add 10.244.1.5/24 dev pod; ip -n "$P" link set pod up; ip -n "$P" link set lo up; ip -n "$P" route add default via 10.244.1.1
sysctl -qw net.ipv4.ip_forward=1
ip netns exec "$P" $N -e 'require("node:net").createServer((s) => s.end("pod")).listen(8080, "10.244.1.5")' & S=$!
ask() { ip netns exec "$C" $N -e 'const s = require("node:net").connect(30080, process.argv[1]); s.setTimeout(2000, () => s.destroy()); s.on("error", () => {}); s.on("data", (d) => process.stdout.write(process.argv[1] + " " + d + "\\n"))' $1; }
`;

describe('mode "" on an empty host', { ...needs("root", "netns", "ip", "nft>=1.0.1"), timeout: 120_000 }, () => {
  test.each<readonly [name: string, flags: string, answered: readonly string[]]>([
    ["nft, which nothing names, is as iptables", "", ["192.0.2.10 pod", "192.0.2.100 pod"]],
    ["nft by name has its own default", "--backend nft", ["192.0.2.10 pod"]],
  ])("node ports and masquerade: %s", async (_name, flags, answered) => {
    const names = `C=turnout-c-${process.pid} P=turnout-p-${process.pid}`;
    const { out, err } = await scriptInNamespace(
      { "objects.yaml": OBJECTS, "config.yaml": CONFIG },
      `${names}; ${STAGE}
      $T run --source file:objects.yaml --node-name node-a --once --config config.yaml ${flags}
      ip address add 192.0.2.100/32 dev eth0
      until ip netns exec "$P" ss -tln | grep -q 8080; do sleep 0.05; done
      ask 192.0.2.10; ask 192.0.2.100
      nft list table ip turnout | grep -o 0x00020000 | sort -u
      kill $S`,
    );
    const isUnnamed = flags === "";
    expect(out.trim().split("\n")).toEqual([...answered, ...(isUnnamed ? ["0x00020000"] : [])]);
    expect(
      err.includes("settings for another mode have no effect with backend nft: iptables.masqueradeBit (17), iptables.masqueradeAll (true)"),
    ).toBe(!isUnnamed);
  });
});

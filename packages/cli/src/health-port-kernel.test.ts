import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";

describe("R-51 a health check node port on a real host", needs("root", "netns", "nft", "ip"), () => {
  test.each([
    ["nft", "primary"],
    ["iptables --backend-option variant=nft", "all"],
  ])("%s, node ports on %s: load balancers may send probes to the load-balancer IP once the host has it", async (backend, chosen) => {
    const outcome = await scriptInNamespace(
      { "web.yaml": WEB },
      `cat >ask.cjs <<'END'
const [, , ip, wanted] = process.argv;
const ask = () => fetch("http://" + ip + ":31234/healthz").then(({ status }) => String(status), () => "closed");
const wait = async (left) => { const got = await ask(); if (got === wanted || left <= 0) console.log(ip, got); else setTimeout(wait, 50, left - 1); };
void wait(300);
END
      ip link add vip0 type veth peer name vip1; ip link set vip1 up
      $T run --source file:web.yaml --node-name node1 --backend ${backend} --nodeport-addresses ${chosen} \\
        --healthz-bind-address "" --metrics-bind-address "" 2>log & P=$!
      trap 'kill $P; wait $P' EXIT
      $N ask.cjs 172.18.0.1 200
      $N ask.cjs 198.51.100.7 closed
      # As a script of a network does it: the link is down when its address comes.
      ip address add 198.51.100.7/32 dev vip0
      ip address add 203.0.113.7/32 dev vip0
      ip link set vip0 up
      $N ask.cjs 198.51.100.7 200
      $N ask.cjs 203.0.113.7 ${chosen === "all" ? "200" : "closed"}
      ip address del 198.51.100.7/32 dev vip0
      $N ask.cjs 198.51.100.7 closed
      ip address add 198.51.100.7/32 dev vip0
      $N ask.cjs 198.51.100.7 200`,
    );
    expect(outcome.out.trimEnd().split("\n")).toEqual([
      "172.18.0.1 200",
      "198.51.100.7 closed",
      "198.51.100.7 200",
      `203.0.113.7 ${chosen === "all" ? "200" : "closed"}`,
      "198.51.100.7 closed",
      "198.51.100.7 200",
    ]);
  });
});

const WEB = `apiVersion: v1
kind: Node
metadata: {name: node1}
spec: {podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 172.18.0.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  healthCheckNodePort: 31234
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  ipFamilies: [IPv4]
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]
status: {loadBalancer: {ingress: [{ip: 198.51.100.7}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.1.5], nodeName: node1, conditions: {ready: true}}]
`;

import { RANGES } from "@turnout/lab";
import { HTTP_NODE_PORT, SHOP } from "./shop.ts";

/** What there is to know of a kept demo. */
export interface KeptFacts {
  /** Namespaces of the first node, the second, and the outside client. */
  readonly node1: string;
  readonly node2: string;
  readonly client: string;
  readonly node2Address: string;
  readonly kubeconfig: string;
  /** Commands that show the backend's rules on a node. */
  readonly looks: readonly { readonly what: string; readonly command: string }[];
}

/** Say what to try in a kept demo, and how to remove it. Pure. */
export function hintsText({ node1, node2, client, node2Address, kubeconfig, looks }: KeptFacts): string {
  const loadBalancer = SHOP.frontend.manifest.ingress?.[0]?.ip ?? "";
  const clusterIP = SHOP.frontend.manifest.clusterIPs[0] ?? "";
  const lines = [
    ["the frontend from outside; again for another pod", `ip netns exec ${client} curl -s http://${loadBalancer}/`],
    ["by a node port of the second node", `ip netns exec ${client} curl -s http://${node2Address}:${HTTP_NODE_PORT}/`],
    ["by its cluster IP, from a node", `ip netns exec ${node2} curl -s http://${clusterIP}/`],
    ["a service without endpoints", `ip netns exec ${node1} curl -s http://${SHOP.search.manifest.clusterIPs[0]}/; echo $?`],
    ...looks.map(({ what, command }) => [what, `ip netns exec ${node1} ${command}`]),
    [
      "what the node is told to do",
      `ip netns exec ${node1} npx turnout print --node-name node1 --cluster-cidr ${RANGES.pods.IPv4} --kubeconfig ${kubeconfig}`,
    ],
    ["how the proxy is doing", `ip netns exec ${node1} curl -s http://127.0.0.1:10249/metrics | grep turnout_`],
  ];
  const text = lines.map(([what, command]) => `  # ${what}\n  ${command}`).join("\n");
  return `\nThe shop stays up. Things to try:\n${text}\n\nRemove it with:\n  npx turnout demo --clean\n`;
}

import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

const MISSING = ["kernel_missing"] as const;
const CHANGED = ["kernel_changed"] as const;
const BACKENDS = ["iptables"];

/** What is done to chains of the Service that is asked for. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const { address, port } = services.web.target("clusterIP", "IPv4");
  const external = services.web.target("externalIP", "IPv4");
  const node = services.web.target("nodePort@node1", "IPv4");
  const pod = site.place("pod-1-1").address("IPv4");
  /** Its chains: of a rule that sends to them only the end is their name. */
  const svc = `$(iptables-nft -t nat -S KUBE-SERVICES | sed -n 's|.* -d ${address}/32 -p tcp .*-j ||p')`;
  const sep = `$(iptables-nft -t nat -S ${svc} | sed -n 's|.*-j \\(KUBE-SEP-.*\\)|\\1|p' | head -n 1)`;
  return {
    address,
    port,
    node,
    pod,
    svc,
    sep,
    fromPod: { from: "pod-1-3", to: address, port },
    fromClient: { from: "client1", to: external.address, port: external.port },
    six: services.web.target("clusterIP", "IPv6"),
  };
}

/** What somebody did to the chains and rules of iptables, found before the proxy repaired it. */
export function iptablesKernelFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  const faults = [...ruleFaults(ground), ...chainFaults(ground), ...tooManyFaults(ground), ...wholeFaults(ground)];
  return faults.map((fault) => ({ ...fault, backends: BACKENDS }));
}

/** Delete the first rule of a chain that a pattern fits; by its number, since `-S` begins with a line for the chain. */
function deletion(chain: string, pattern: string, tool: string = "iptables-nft"): string {
  return `${tool} -t nat -D ${chain} $(${tool} -t nat -S ${chain} | grep -n -e '${pattern}' | awk -F: '{ print $1 - 1; exit }')`;
}

function ruleFaults({ address, node, fromPod, six, port }: Ground): readonly Fault[] {
  return [
    {
      name: "KUBE-SERVICES has no rule for the Service",
      culprits: MISSING,
      names: `-d ${address}/32`,
      command: "iptables -t nat -S KUBE-SERVICES",
      ask: fromPod,
      inject: deletion("KUBE-SERVICES", ` -d ${address}/32 -p tcp `),
    },
    {
      name: "KUBE-SERVICES has no rule for the Service, IPv6",
      culprits: MISSING,
      names: `-d ${six.address}/128`,
      command: "ip6tables -t nat -S KUBE-SERVICES",
      ask: { from: "pod-1-3", to: six.address, port },
      inject: deletion("KUBE-SERVICES", ` -d ${six.address}/128 -p tcp `, "ip6tables-nft"),
    },
    {
      name: "KUBE-NODEPORTS has no rule for the node port",
      culprits: MISSING,
      names: `--dport ${node.port}`,
      ask: { from: "client1", to: node.address, port: node.port },
      inject: deletion("KUBE-NODEPORTS", `KUBE-NODEPORTS -p tcp .* --dport ${node.port} `),
    },
    {
      name: "KUBE-SERVICES does not lead to the node ports",
      culprits: CHANGED,
      names: "chain KUBE-SERVICES of table nat lacks the rule ",
      ask: { from: "client1", to: node.address, port: node.port },
      inject: deletion("KUBE-SERVICES", "-j KUBE-NODEPORTS"),
    },
    {
      name: "PREROUTING does not lead to KUBE-SERVICES",
      culprits: MISSING,
      names: "the jumps of chain PREROUTING of table nat to KUBE-SERVICES",
      ask: fromPod,
      inject: deletion("PREROUTING", "-j KUBE-SERVICES"),
    },
  ];
}

function chainFaults({ pod, svc, sep, fromPod, fromClient }: Ground): readonly Fault[] {
  return [
    {
      name: "the Service's chain is empty",
      culprits: CHANGED,
      names: "of table nat is empty",
      command: "iptables -t nat -S KUBE-SVC-",
      ask: fromPod,
      inject: `iptables-nft -t nat -F ${svc}`,
    },
    {
      name: "the Service's chain leads to one endpoint of two",
      culprits: CHANGED,
      names: ` -> ${pod}:8080`,
      ask: fromPod,
      inject: deletion(svc, "-j KUBE-SEP-"),
    },
    {
      name: "an endpoint's chain translates to an address of nobody",
      culprits: CHANGED,
      names: "10.9.9.9:8080",
      command: "iptables -t nat -S KUBE-SEP-",
      ask: fromPod,
      inject: `iptables-nft -t nat -R ${sep} 2 -p tcp -m tcp -j DNAT --to-destination 10.9.9.9:8080`,
    },
    {
      name: "an endpoint's chain has no rule that translates",
      culprits: CHANGED,
      names: `--to-destination ${pod}:8080`,
      ask: fromPod,
      inject: `iptables-nft -t nat -D ${sep} 2`,
    },
    {
      name: "KUBE-POSTROUTING masquerades nothing",
      culprits: CHANGED,
      names: "KUBE-POSTROUTING",
      ask: fromClient,
      inject: deletion("KUBE-POSTROUTING", "-j MASQUERADE"),
    },
    {
      name: "KUBE-MARK-MASQ marks nothing",
      culprits: CHANGED,
      names: "chain KUBE-MARK-MASQ of table nat is empty",
      ask: fromClient,
      inject: "iptables-nft -t nat -F KUBE-MARK-MASQ",
    },
  ];
}

function tooManyFaults({ address, port, svc, fromPod }: Ground): readonly Fault[] {
  return [
    {
      name: "a rule too many in the Service's chain",
      culprits: CHANGED,
      names: "-j RETURN",
      ask: fromPod,
      inject: `iptables-nft -t nat -I ${svc} -j RETURN`,
    },
    {
      name: "KUBE-FORWARD drops the pods' port",
      culprits: CHANGED,
      names: "--dport 8080 -j DROP",
      ask: fromPod,
      inject: "iptables-nft -I KUBE-FORWARD -p tcp --dport 8080 -j DROP",
    },
    {
      name: "KUBE-SERVICES leaves the Service before its own rule",
      culprits: ["kernel_stale"],
      names: `-d ${address}/32 -j RETURN`,
      ask: fromPod,
      inject: `iptables-nft -t nat -I KUBE-SERVICES -d ${address} -j RETURN`,
    },
    {
      name: "KUBE-SERVICES drops the pods' port",
      culprits: ["kernel_stale"],
      names: "--dport 8080 -j DROP",
      ask: fromPod,
      inject: "iptables-nft -I KUBE-SERVICES -p tcp --dport 8080 -j DROP",
    },
    {
      name: "a rule for a Service that is gone (iptables)",
      culprits: ["kernel_stale"],
      names: "10.96.66.6",
      ask: { from: "pod-1-3", to: "10.96.66.6", port },
      inject: `iptables-nft -t nat -I KUBE-SERVICES -d 10.96.66.6/32 -p tcp -m comment --comment "shop/gone:http cluster IP" -m tcp --dport ${port} -j ${svc}`,
    },
    {
      name: "a rule for a node port that is gone (iptables)",
      culprits: ["kernel_stale"],
      names: "30777",
      ask: { from: "client1", to: "172.18.0.1", port: 30_777 },
      inject: `iptables-nft -t nat -A KUBE-NODEPORTS -p tcp -m comment --comment "shop/gone:http" -m tcp --dport 30777 -j ${svc}`,
    },
  ];
}

function wholeFaults({ fromPod }: Ground): readonly Fault[] {
  return [
    {
      name: "the nat table is flushed",
      culprits: MISSING,
      names: "never written to it: the jumps of chain PREROUTING of table nat to KUBE-SERVICES; also removed: the rule ",
      ask: fromPod,
      inject: "iptables-nft -t nat -F",
    },
    {
      name: "all rules and chains of iptables are gone",
      culprits: MISSING,
      names: "KUBE-",
      ask: fromPod,
      inject: "for t in nat filter mangle; do iptables-nft -t $t -F; iptables-nft -t $t -X; done",
    },
    {
      name: "the table nat is gone",
      culprits: MISSING,
      names: "table nat",
      ask: fromPod,
      inject: "iptables-nft -t nat -F; iptables-nft -t nat -X; nft delete table ip nat 2>/dev/null || true",
    },
  ];
}

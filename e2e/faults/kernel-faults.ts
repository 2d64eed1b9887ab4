import { FLAGS } from "./stage.ts";
import type { FaultStage } from "./stage.ts";
import type { Fault } from "./fault.ts";

const MISSING = ["kernel_missing"] as const;
const CHANGED = ["kernel_changed"] as const;

/** What is done to the table. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const { address, port } = services.web.target("clusterIP", "IPv4");
  const external = services.web.target("externalIP", "IPv4");
  const node = services.web.target("nodePort@node1", "IPv4");
  const hairpin = services.hairpin.target("clusterIP", "IPv4");
  const affine = services.affine.target("clusterIP", "IPv4");
  const fromPod = { from: "pod-1-3", to: address, port };
  const fromClient = { from: "client1", to: external.address, port: external.port };
  const pod = site.place("pod-1-2").address("IPv4");
  const nft = (text: string): string => `nft ${text}`;
  return { address, port, node, hairpin, affine, fromPod, fromClient, pod, nft, services };
}

/** What somebody did to the proxy's own table, found before the proxy repaired it. */
export function kernelFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  const faults = [...elementFaults(ground), ...chainFaults(ground), ...wholeFaults(ground)].map((fault) => ({
    ...fault,
    backends: ["nft"],
  }));
  return [...faults, ...flagFaults(ground)];
}

/** The proxy that wrote the rules is gone, and the command is told other flags. */
function flagFaults({ fromPod, nft }: Ground): readonly Fault[] {
  const other = { culprits: ["other_flags"], ask: { ...fromPod, standaloneWith: ["--node-name", "node1"] } } as const;
  const standalone = ["--node-name", "node1", ...FLAGS];
  return [
    { ...other, name: "asked without the flags that the proxy had", backends: ["nft", "iptables", "ebpf"] },
    {
      ...other,
      name: "asked without --service-metrics, which the proxy had",
      backends: ["nft"],
      ask: { ...fromPod, standaloneWith: standalone },
      extraFlags: ["--service-metrics", "20"],
    },
    {
      name: "asked with --service-metrics, which the proxy had, and an element is deleted",
      backends: ["nft"],
      culprits: MISSING,
      names: "element ",
      ask: { ...fromPod, standaloneWith: [...standalone, "--service-metrics", "1"] },
      extraFlags: ["--service-metrics", "20"],
      inject: nft(`delete element ip turnout services { ${fromPod.to} . tcp . ${fromPod.port} }`),
    },
    {
      ...other,
      name: "asked without the option of the backend that the proxy had",
      backends: ["iptables"],
      names: "KUBE-SVC-",
      ask: { ...fromPod, standaloneWith: standalone },
      extraFlags: ["--backend-option", "endpoint-comments=false"],
    },
    {
      ...other,
      name: "asked without the size of maps that the proxy had",
      backends: ["ebpf"],
      ask: { ...fromPod, standaloneWith: standalone },
      extraFlags: ["--backend-option", "max-services=1000"],
    },
  ];
}

function elementFaults({ address, port, fromPod, nft }: Ground): readonly Fault[] {
  return [
    {
      name: "an element of services is deleted",
      culprits: MISSING,
      names: address,
      ask: fromPod,
      inject: nft(`delete element ip turnout services { ${address} . tcp . ${port} }`),
    },
    {
      name: "an element of services is deleted, and the proxy is stopped (SIGSTOP)",
      culprits: ["not_running"],
      names: "the proxy is stopped (SIGSTOP)",
      command: "kill -CONT ",
      isStopped: true,
      ask: fromPod,
      inject: nft(`delete element ip turnout services { ${address} . tcp . ${port} }`),
    },
    {
      name: "an element of the endpoints is deleted",
      culprits: CHANGED,
      names: address,
      ask: fromPod,
      inject: nft(`delete element ip turnout endpoints-tcp { ${address} . ${port} . 2 }`),
    },
    {
      name: "an element leads elsewhere",
      culprits: CHANGED,
      names: address,
      ask: fromPod,
      inject: `${nft(`delete element ip turnout services { ${address} . tcp . ${port} }`)}; ${nft(`add element ip turnout services { ${address} . tcp . ${port} : drop }`)}`,
    },
    {
      name: "an endpoint too many",
      culprits: CHANGED,
      names: `the kernel sends packets for ${address}:${port}/TCP to `,
      command: "nft list map ip turnout endpoints-tcp",
      ask: fromPod,
      inject: nft(`add element ip turnout endpoints-tcp { ${address} . ${port} . 1 : 10.9.9.9 . 8080 }`),
    },
  ];
}

function chainFaults({ fromPod, fromClient, nft }: Ground): readonly Fault[] {
  return [
    {
      name: "the chain that prerouting calls is empty",
      culprits: CHANGED,
      names: "nat-prerouting",
      ask: fromPod,
      inject: nft("flush chain ip turnout nat-prerouting"),
    },
    {
      name: "the chain that dispatches is empty",
      culprits: CHANGED,
      names: "dispatch",
      ask: fromPod,
      inject: nft("flush chain ip turnout dispatch"),
    },
    {
      name: "masquerade is gone",
      culprits: CHANGED,
      names: "nat-postrouting",
      ask: fromClient,
      inject: nft("flush chain ip turnout nat-postrouting"),
    },
    {
      name: "a rule too many in a chain that picks",
      culprits: CHANGED,
      names: "pick-tcp",
      ask: fromPod,
      inject: nft("insert rule ip turnout pick-tcp drop"),
    },
  ];
}

function wholeFaults({ address, port, node, hairpin, affine, fromPod, pod, nft, services }: Ground): readonly Fault[] {
  return [
    {
      name: "the node's address is gone from nodeport-ips",
      culprits: MISSING,
      names: "nodeport-ips",
      ask: { from: "client1", to: node.address, port: node.port },
      inject: nft(`delete element ip turnout nodeport-ips { ${node.address} }`),
    },
    {
      name: "a node port's element is deleted",
      culprits: MISSING,
      names: String(node.port),
      ask: { from: "client1", to: node.address, port: node.port },
      inject: nft(`delete element ip turnout nodeports { tcp . ${node.port} }`),
    },
    {
      name: "hairpin is gone for a pod that asks itself",
      culprits: MISSING,
      names: pod,
      ask: { from: "pod-1-2", to: hairpin.address, port: hairpin.port },
      inject: nft(`delete element ip turnout hairpin { ${pod} . ${pod} }`),
    },
    {
      name: "affinity's list of endpoints is gone",
      culprits: MISSING,
      names: "of map affinity-endpoints",
      ask: { from: "pod-1-3", to: affine.address, port: affine.port },
      inject: nft("flush map ip turnout affinity-endpoints"),
    },
    {
      name: "the node's address is gone from nodeport-ips, and an element of services, which alone the packet needs",
      culprits: MISSING,
      names: `never written to it: element ${address} . tcp . ${port} of map services`,
      ask: fromPod,
      inject: `${nft(`delete element ip turnout nodeport-ips { ${node.address} }`)}; ${nft(`delete element ip turnout services { ${address} . tcp . ${port} }`)}`,
    },
    { name: "the table is deleted", culprits: MISSING, names: "table ip turnout", ask: fromPod, inject: nft("delete table ip turnout") },
    { name: "nft flush ruleset", culprits: MISSING, names: "table ip turnout", ask: fromPod, inject: nft("flush ruleset") },
    {
      name: "an element of services is deleted, IPv6",
      culprits: MISSING,
      names: "of map services (table ip6 turnout)",
      ask: { from: "pod-1-3", to: services.web.target("clusterIP", "IPv6").address, port },
      inject: nft(`delete element ip6 turnout services { ${services.web.target("clusterIP", "IPv6").address} . tcp . ${port} }`),
    },
    {
      name: "an element for a Service that is gone",
      culprits: ["kernel_stale"],
      names: "10.96.66.6",
      ask: { from: "pod-1-3", to: "10.96.66.6", port: 80 },
      inject: nft("add element ip turnout services { 10.96.66.6 . tcp . 80 : goto pick-tcp }"),
    },
    {
      name: "an element for a node port that is gone",
      culprits: ["kernel_stale"],
      names: "30777",
      ask: { from: "client1", to: node.address, port: 30_777 },
      inject: nft("add element ip turnout nodeports { tcp . 30777 : goto pick-tcp }"),
    },
  ];
}

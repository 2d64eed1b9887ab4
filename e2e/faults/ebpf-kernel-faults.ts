import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { hostPort, parseIP } from "@turnout/core";
import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

const MISSING = ["kernel_missing"] as const;
const CHANGED = ["kernel_changed"] as const;
const BACKENDS = ["ebpf"];
const WRITER = `${process.execPath} --conditions=@turnout/source ${fileURLToPath(new URL("../../bench/healing/ebpf-hand.ts", import.meta.url))}`;
const PINS = "/sys/fs/bpf/turnout";

/** What is done to maps, links and the table of nft. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const web = services.web.target("clusterIP", "IPv4");
  const node = services.web.target("nodePort@node1", "IPv4");
  const ranged = services.ranged.target("loadBalancerIP", "IPv4");
  const affine = services.affine.target("clusterIP", "IPv4");
  const six = services.web.target("clusterIP", "IPv6");
  const endpoints = ["pod-1-1", "pod-2-1"].map((name) => hostPort(site.place(name).address("IPv4"), 8080));
  const [here = "", away = ""] = endpoints;
  return {
    web,
    node,
    affine,
    six,
    here,
    away,
    /** The name of the Service's list of endpoints. */
    list: createHash("sha256").update(endpoints.join("\n")).digest("hex").slice(0, 16),
    awayBytes: addressBytes(site.place("pod-2-1").address("IPv4")),
    fromPod: { from: "pod-1-3", to: web.address, port: web.port },
    fromClient: { from: "client1", to: node.address, port: node.port },
    fromRange: { from: "client1", to: ranged.address, port: ranged.port },
    toAffine: { from: "pod-1-3", to: affine.address, port: affine.port },
  };
}

/** What somebody did to maps, programs and the table of nft, found before the proxy repaired it. */
export function ebpfKernelFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  const faults = [...serviceFaults(ground), ...endpointFaults(ground), ...nodeFaults(ground), ...attachedFaults(ground)];
  return faults.map((fault) => ({ ...fault, backends: BACKENDS }));
}

/** An address as it lies in maps; of IPv4 its end, which tells it from others. */
function addressBytes(address: string): string {
  const ip = parseIP(address);
  if (ip === undefined) throw new Error(`${address} is no address`);
  return ip.value.toString(16).padStart(ip.family === "IPv4" ? 8 : 32, "0");
}

/** An address and a TCP port as they lie in keys of services. */
function keyBytes({ address, port }: { readonly address: string; readonly port: number }): string {
  return `${addressBytes(address)}${port.toString(16).padStart(4, "0")}06`;
}

/** What the hand does to a map. */
function toMap(verb: "delete" | "copy" | "replace", map: string, ...bytes: readonly string[]): string {
  return `${WRITER} ${verb} ${PINS}/v*/${map} ${bytes.join(" ")}`;
}

function serviceFaults({ web, node, six, affine, list, fromPod, fromClient, toAffine }: Ground): readonly Fault[] {
  const element = `element ${hostPort(web.address, web.port)}/TCP of BPF map services`;
  return [
    {
      name: "an element of services is deleted (eBPF)",
      culprits: MISSING,
      names: element,
      command: `bpftool map lookup pinned ${PINS}/v`,
      ask: fromPod,
      inject: toMap("delete", "services", keyBytes(web)),
    },
    {
      name: "an element of services is deleted (eBPF), IPv6",
      culprits: MISSING,
      names: `element ${hostPort(six.address, six.port)}/TCP of BPF map services`,
      ask: { from: "pod-1-3", to: six.address, port: six.port },
      inject: toMap("delete", "services", keyBytes(six)),
    },
    {
      name: "an element of services says to drop",
      culprits: CHANGED,
      names: `with packets for ${hostPort(web.address, web.port)}/TCP from pods here the kernel does "drop"`,
      ask: fromPod,
      inject: toMap("replace", "services", keyBytes(web), `${list}0200000001`, `${list}0200000003`),
    },
    {
      name: "a Service has forgotten its affinity",
      culprits: CHANGED,
      names: `element ${hostPort(affine.address, affine.port)}/TCP of BPF map services`,
      ask: toAffine,
      inject: toMap("replace", "services", keyBytes(affine), "58020000", "00000000"),
    },
    {
      name: "a node port's element of services is deleted",
      culprits: MISSING,
      names: `element 0.0.0.0:${node.port}/TCP of BPF map services`,
      ask: fromClient,
      inject: toMap("delete", "services", keyBytes({ address: "0.0.0.0", port: node.port })),
    },
    {
      name: "an element for a Service that is gone (eBPF)",
      culprits: ["kernel_stale"],
      names: "element 10.96.66.6:80/TCP of BPF map services",
      ask: { from: "pod-1-3", to: "10.96.66.6", port: 80 },
      inject: toMap("copy", "services", keyBytes(web), keyBytes({ address: "10.96.66.6", port: 80 })),
    },
    {
      name: "an element for a node port that is gone (eBPF)",
      culprits: ["kernel_stale"],
      names: "element 0.0.0.0:30777/TCP of BPF map services",
      ask: { from: "client1", to: "172.18.0.1", port: 30_777 },
      inject: toMap("copy", "services", keyBytes(web), keyBytes({ address: "0.0.0.0", port: 30_777 })),
    },
    { name: "the map services is empty", culprits: MISSING, names: element, ask: fromPod, inject: toMap("delete", "services") },
  ];
}

function endpointFaults({ list, here, away, awayBytes, fromPod }: Ground): readonly Fault[] {
  const map = `list ${list} of BPF map endpoints`;
  return [
    {
      name: "an endpoint's element is deleted",
      culprits: CHANGED,
      names: `${map} sends packets to ${here}, should: ${here}, ${away}`,
      command: `bpftool map lookup pinned ${PINS}/v`,
      ask: fromPod,
      inject: toMap("delete", "endpoints", `${list}01000000`),
    },
    {
      name: "an endpoint's element has the address of nobody",
      culprits: CHANGED,
      names: `${map} sends packets to ${here}, 10.9.9.9:8080, should: ${here}, ${away}`,
      ask: fromPod,
      inject: toMap("replace", "endpoints", list, awayBytes, addressBytes("10.9.9.9")),
    },
    {
      name: "an endpoint too many (eBPF)",
      culprits: CHANGED,
      names: `${map} sends packets to ${here}, ${away}, ${away}, should: ${here}, ${away}`,
      ask: fromPod,
      inject: toMap("copy", "endpoints", `${list}01000000`, `${list}02000000`),
    },
    { name: "the map endpoints is empty", culprits: MISSING, names: map, ask: fromPod, inject: toMap("delete", "endpoints") },
  ];
}

function nodeFaults({ node, fromClient, fromRange }: Ground): readonly Fault[] {
  return [
    {
      name: "the node's address is gone from node_addresses",
      culprits: MISSING,
      names: `element node-address ${node.address} of BPF map node_addresses`,
      ask: fromClient,
      inject: toMap("delete", "node_addresses", addressBytes(node.address)),
    },
    {
      name: "the source ranges of a load balancer are gone (eBPF)",
      culprits: MISSING,
      names: "of BPF map source_ranges (203.0.113.0/24)",
      ask: fromRange,
      inject: toMap("delete", "source_ranges"),
    },
  ];
}

function attachedFaults({ fromPod, fromClient }: Ground): readonly Fault[] {
  return [
    {
      name: "the program at connect() is detached",
      culprits: CHANGED,
      names: "the program turnout_conn4 at connect4 of its cgroup is detached",
      ask: fromPod,
      inject: `${WRITER} detach ${PINS}/links/turnout_conn4`,
    },
    { name: "the pins of links are removed", culprits: MISSING, names: "the program turnout_", ask: fromPod, inject: `rm ${PINS}/links/*` },
    {
      name: "the programs at devices are detached",
      culprits: CHANGED,
      names: "the program at ingress of",
      command: "bpftool net",
      ask: fromClient,
      inject: `for pin in ${PINS}/links/*-ingress; do ${WRITER} detach $pin; done`,
    },
    {
      name: "the table of nft is deleted (eBPF)",
      culprits: MISSING,
      names: "inet turnout-ebpf",
      ask: fromClient,
      inject: "nft delete table inet turnout-ebpf",
    },
    {
      name: "a chain of the table of nft is empty (eBPF)",
      culprits: CHANGED,
      names: 'the nftables table inet turnout-ebpf lacks "refuse ',
      ask: fromClient,
      inject: "nft flush chain inet turnout-ebpf refuse",
    },
  ];
}

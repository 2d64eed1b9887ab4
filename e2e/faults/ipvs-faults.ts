import type { Fault, FaultQuestion } from "./fault.ts";
import type { FaultStage, ServiceName } from "./stage.ts";

/** What faults of ipvs are made of. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const target = (
    name: ServiceName,
    way: "clusterIP" | "externalIP" | "loadBalancerIP" | "nodePort@node1",
    family: "IPv4" | "IPv6" = "IPv4",
  ) => {
    const { address, port } = services[name].target(way, family);
    return { to: address, port };
  };
  const [pod11 = "", pod12 = "", pod21 = ""] = ["pod-1-1", "pod-1-2", "pod-2-1"].map((name) => site.place(name).address("IPv4"));
  return { target, web: target("web", "clusterIP"), here: target("here", "clusterIP"), pod11, pod12, pod21 };
}

/** Rules and parameters where packets of IPVS come by: they come in for the host itself, which sends them on; only answers are forwarded. */
export function ipvsWayFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [...dropFaults(ground), ...harmlessFaults(ground), ...parameterFaults(ground)].map((fault) => ({ ...fault, backends: ["ipvs"] }));
}

/** What somebody did to the proxy's own objects, found before the proxy repaired it. */
export function ipvsKernelFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [...serverFaults(ground), ...settingFaults(ground), ...setFaults(ground), ...otherKernelFaults(ground)].map((fault) => ({
    ...fault,
    backends: ["ipvs"],
  }));
}

const KEPT = "/tmp/turnout-fault";

/** Done to a table of iptables, and undone by what it was: what an answer had one type is gone as well. */
function toTable(table: string, how: string): Pick<Fault, "inject" | "fix"> {
  return {
    inject: `iptables-legacy-save -t ${table} >${KEPT}; ${how}`,
    fix: `iptables-legacy-restore -T ${table} <${KEPT}; rm ${KEPT}`,
  };
}

/** The first rule of a chain, as `TABLE CHAIN MATCH -j TARGET`. */
function rule(text: string): Pick<Fault, "inject" | "fix"> {
  const [table = "", chain, ...rest] = text.split(" ");
  return toTable(table, `iptables-legacy -t ${table} -I ${chain} ${rest.join(" ")}`);
}

function dropFaults({ here, target, pod11 }: Ground): readonly Fault[] {
  const fromPod = { from: "pod-1-2", ...here };
  const dropped = { culprits: ["external_drop"], connections: "repaired" } as const;
  return [
    {
      name: "ipvs: INPUT drops what comes for the Service's port",
      ...dropped,
      ask: fromPod,
      ...rule("filter INPUT -i veth+ -p tcp --dport 80 -j DROP"),
    },
    {
      name: "ipvs: INPUT's policy is to drop",
      ...dropped,
      ask: fromPod,
      ...toTable(
        "filter",
        "iptables-legacy -A INPUT -i lo -j ACCEPT; iptables-legacy -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-legacy -P INPUT DROP",
      ),
    },
    {
      name: "ipvs: OUTPUT drops what goes to pods",
      ...dropped,
      ask: fromPod,
      ...rule("filter OUTPUT -d 10.1.0.0/16 -p tcp --dport 8080 -j DROP"),
    },
    { name: "ipvs: FORWARD drops answers", ...dropped, ask: fromPod, ...rule(`filter FORWARD -s ${pod11}/32 -p tcp --sport 8080 -j DROP`) },
    {
      name: "ipvs: INPUT rejects a client at its node port",
      ...dropped,
      ask: { from: "client1", ...target("here", "nodePort@node1") },
      ...rule("filter INPUT -i eth0 -p tcp --dport 30000:32767 -j REJECT"),
    },
    {
      name: "ipvs: what the host sends to pods is dropped",
      ...dropped,
      ask: { from: "host", ...here },
      ...rule("filter OUTPUT -d 10.1.0.0/16 -p tcp --dport 8080 -j DROP"),
    },
    {
      name: "ipvs: nine of ten new connections are dropped at INPUT, at random",
      culprits: [],
      unjudged: "-A INPUT ! -i lo -p tcp",
      ask: fromPod,
      ...rule("filter INPUT ! -i lo -p tcp --syn -m statistic --mode random --probability 0.9 -j DROP"),
    },
    {
      name: "ipvs: fail2ban has banned the client",
      culprits: ["external_drop"],
      names: "fail2ban",
      ask: { from: "client1", ...target("web", "externalIP") },
      ...toTable(
        "filter",
        "iptables-legacy -N f2b-web; iptables-legacy -A f2b-web -s 203.0.113.0/24 -j REJECT; iptables-legacy -I INPUT -p tcp -m multiport --dports 80,443 -j f2b-web",
      ),
    },
    {
      name: "ipvs: what would be masqueraded is not tracked",
      culprits: ["untracked"],
      ask: { from: "client1", ...target("remote", "nodePort@node1") },
      ...rule("raw PREROUTING -i eth0 -p tcp --dport 30000:32767 -j CT --notrack"),
    },
  ];
}

/** What keeps packets of other dataplanes from arriving, and none of these. */
function harmlessFaults({ here, target }: Ground): readonly Fault[] {
  const fromPod = { from: "pod-1-2", ...here };
  const harmless = { culprits: [], connections: "arrive" } as const;
  return [
    {
      name: "ipvs: FORWARD drops the pods' port, and no request comes by it",
      ...harmless,
      ask: fromPod,
      ...rule("filter FORWARD -p tcp --dport 8080 -j DROP"),
    },
    {
      name: "ipvs: the service range is not tracked, and IPVS serves it",
      ...harmless,
      ask: fromPod,
      ...rule("raw PREROUTING -d 10.96.0.0/16 -j CT --notrack"),
    },
    {
      name: "ipvs: forwarding is off on the client's device, and nothing is forwarded from there",
      ...harmless,
      ask: { from: "pod-1-2", ...target("remote", "clusterIP") },
      inject: "sysctl -qw net.ipv4.conf.veth2.forwarding=0",
      fix: "sysctl -qw net.ipv4.conf.veth2.forwarding=1",
    },
  ];
}

function parameterFaults({ target }: Ground): readonly Fault[] {
  return [
    {
      name: "ipvs: forwarding is off on the endpoint's device, so answers are lost",
      culprits: ["forwarding_off"],
      connections: "repaired",
      ask: { from: "pod-1-2", ...target("remote", "clusterIP") },
      inject: "sysctl -qw net.ipv4.conf.eth0.forwarding=0",
      fix: "sysctl -qw net.ipv4.conf.eth0.forwarding=1",
    },
  ];
}

/** Done to a virtual server, and undone by what it was. */
function toServer({ to, port }: Pick<FaultQuestion, "to" | "port">, how: string): Pick<Fault, "inject" | "fix"> {
  const server = to.includes(":") ? `[${to}]:${port}` : `${to}:${port}`;
  return {
    inject: `ipvsadm -Sn | grep -F -- '-t ${server} ' >${KEPT}; ${how.replaceAll("@", server)}`,
    fix: `ipvsadm -D -t ${server} 2>/dev/null || true; ipvsadm -R <${KEPT}; rm ${KEPT}`,
  };
}

const MISSING = ["kernel_missing"] as const;
const CHANGED = ["kernel_changed"] as const;

function serverFaults({ web, here, target, pod11, pod21 }: Ground): readonly Fault[] {
  const fromPod = { from: "pod-1-3", ...web };
  const [six, node] = [target("web", "clusterIP", "IPv6"), target("here", "nodePort@node1")];
  return [
    {
      name: "a virtual server is deleted",
      culprits: MISSING,
      names: `virtual server TCP ${web.to}`,
      ask: fromPod,
      ...toServer(web, "ipvsadm -D -t @"),
    },
    {
      name: "a virtual server is deleted, IPv6",
      culprits: MISSING,
      names: six.to,
      ask: { from: "pod-1-3", ...six },
      ...toServer(six, "ipvsadm -D -t @"),
    },
    {
      name: "a node port's virtual server is deleted",
      culprits: MISSING,
      names: String(node.port),
      ask: { from: "client1", ...node },
      ...toServer(node, "ipvsadm -D -t @"),
    },
    {
      name: "a real server is removed",
      culprits: MISSING,
      names: `real server ${pod21}`,
      ask: fromPod,
      ...toServer(web, `ipvsadm -d -t @ -r ${pod21}:8080`),
    },
    {
      name: "a real server's weight is 0",
      culprits: MISSING,
      names: `real server ${pod11}`,
      ask: { from: "pod-1-3", ...here },
      ...toServer(here, `ipvsadm -e -t @ -r ${pod11}:8080 -m -w 0`),
    },
    {
      name: "all real servers are removed",
      culprits: MISSING,
      names: "real server",
      ask: fromPod,
      ...toServer(web, "ipvsadm -D -t @; ipvsadm -A -t @ -s rr"),
    },
    {
      name: "a real server too many",
      culprits: ["kernel_stale"],
      names: "10.9.9.9",
      ask: fromPod,
      ...toServer(web, "ipvsadm -a -t @ -r 10.9.9.9:8080 -m"),
    },
  ];
}

function settingFaults({ web, target }: Ground): readonly Fault[] {
  const fromPod = { from: "pod-1-3", ...web };
  const affine = target("affine", "clusterIP");
  return [
    { name: "another scheduler", culprits: CHANGED, names: web.to, ask: fromPod, ...toServer(web, "ipvsadm -E -t @ -s sh") },
    {
      name: "a virtual server forgets its clients at once",
      culprits: CHANGED,
      names: affine.to,
      ask: { from: "pod-1-3", ...affine },
      ...toServer(affine, "ipvsadm -E -t @ -s rr"),
    },
    {
      name: "all of IPVS is emptied",
      culprits: MISSING,
      names: web.to,
      ask: fromPod,
      inject: `ipvsadm -Sn >${KEPT}; ipvsadm -C`,
      fix: `ipvsadm -R <${KEPT}; rm ${KEPT}`,
    },
    {
      name: "a virtual server for a Service that is gone",
      culprits: ["kernel_stale"],
      names: "10.96.66.6",
      ask: { from: "pod-1-3", to: "10.96.66.6", port: 80 },
      inject: "ip address add 10.96.66.6/32 dev kube-ipvs0; ipvsadm -A -t 10.96.66.6:80 -s rr",
      fix: "ipvsadm -D -t 10.96.66.6:80; ip address del 10.96.66.6/32 dev kube-ipvs0",
    },
  ];
}

/** Done to a set, and undone by what it held. */
function toSet(set: string, how: string): Pick<Fault, "inject" | "fix"> {
  return { inject: `ipset save ${set} >${KEPT}; ${how.replaceAll("@", set)}`, fix: `ipset restore -exist <${KEPT}; rm ${KEPT}` };
}

function setFaults({ web, target, pod12 }: Ground): readonly Fault[] {
  const [balancer, hairpin] = [target("ranged", "loadBalancerIP"), target("hairpin", "clusterIP")];
  return [
    {
      name: "a set is emptied",
      culprits: MISSING,
      names: "KUBE-CLUSTER-IP",
      ask: { from: "pod-1-3", ...web },
      ...toSet("KUBE-CLUSTER-IP", "ipset flush @"),
    },
    {
      name: "the source ranges of a load balancer are gone",
      culprits: MISSING,
      names: "KUBE-LOAD-BALANCER-SOURCE-CIDR",
      ask: { from: "client1", ...balancer },
      ...toSet("KUBE-LOAD-BALANCER-SOURCE-CIDR", "ipset flush @"),
    },
    {
      name: "hairpin is gone for a pod that asks itself",
      culprits: MISSING,
      names: pod12,
      ask: { from: "pod-1-2", ...hairpin },
      ...toSet("KUBE-LOOP-BACK", `ipset del @ ${pod12},tcp:8080,${pod12}`),
    },
  ];
}

function otherKernelFaults({ web, target }: Ground): readonly Fault[] {
  const fromPod = { from: "pod-1-3", ...web };
  const fromClient = { from: "client1", ...target("web", "externalIP") };
  return [
    {
      name: "a cluster IP is gone from kube-ipvs0",
      culprits: MISSING,
      names: `address ${web.to} on kube-ipvs0`,
      ask: fromPod,
      inject: `ip address del ${web.to}/32 dev kube-ipvs0`,
      fix: `ip address add ${web.to}/32 dev kube-ipvs0`,
    },
    {
      name: "the chain KUBE-SERVICES is empty",
      culprits: CHANGED,
      names: "KUBE-SERVICES",
      ask: fromPod,
      ...toTable("nat", "iptables-legacy -t nat -F KUBE-SERVICES"),
    },
    {
      name: "PREROUTING calls nothing of ours",
      culprits: MISSING,
      names: "PREROUTING",
      ask: fromClient,
      ...toTable("nat", "iptables-legacy -t nat -F PREROUTING"),
    },
    {
      name: "masquerade is gone (ipvs)",
      culprits: CHANGED,
      names: "KUBE-POSTROUTING",
      ask: fromClient,
      ...toTable("nat", "iptables-legacy -t nat -F KUBE-POSTROUTING"),
    },
    {
      name: "IPVS does not tell conntrack",
      culprits: CHANGED,
      names: "net.ipv4.vs.conntrack",
      ask: fromPod,
      inject: "sysctl -qw net.ipv4.vs.conntrack=0",
      fix: "sysctl -qw net.ipv4.vs.conntrack=1",
    },
  ];
}

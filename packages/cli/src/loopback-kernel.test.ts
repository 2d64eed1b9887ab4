import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";

const RUN = (backend: string, addresses: string): string =>
  `$T run --source file:web.yaml --node-name node1 --backend ${backend} --nodeport-addresses ${addresses} --healthz-bind-address "" 2>log & P=$!`;

/** Endpoints are addresses of the host itself: what is asked is who answers on loopback, and to which endpoint that leads. */
const HOST = `ip address add 10.1.1.5/32 dev lo; ip address add 10.1.2.6/32 dev lo; ip address add fd00:1:1::5/128 dev lo nodad
  $N play.cjs serve & S=$!
  trap 'kill $S $P; wait' EXIT`;

const BACKENDS = ["nft", "iptables --backend-option variant=nft", "userspace --backend-option own-addresses=false"];

describe("R-38 node ports on loopback, of a real host", needs("root", "netns", "nft", "ip"), () => {
  test("turnout why sees that the process connects to an endpoint elsewhere from an address of the node", async () => {
    const { out } = await scriptInNamespace(
      { "web.yaml": SERVICES, "play.cjs": PROGRAM },
      `${HOST}
      ip link add eth9 type veth peer eth10; ip address add 10.1.3.1/24 dev eth9; ip link set eth9 up; ip link set eth10 up
      ip neighbour add 10.1.3.7 lladdr 02:00:00:00:00:07 dev eth9
      ${RUN("nft", "localhost")}
      $N play.cjs until 127.0.0.1 30080
      $T why host 127.0.0.1:30085`,
    );
    expect(out).toContain("nothing wrong was found on this node");
    expect(out).toContain("to 10.1.3.7:8080: it leaves by eth9");
  });

  test("nft: TCP is answered on 127.0.0.1 and ::1, affine clients keep their endpoint, Local is obeyed, UDP is refused and counted", async () => {
    const { out } = await scriptInNamespace(
      { "web.yaml": SERVICES, "play.cjs": PROGRAM },
      `${HOST}
      ${RUN("nft", "primary,localhost")}
      $N play.cjs until 127.0.0.1 30080
      $N play.cjs ask 127.0.0.1 30080 40
      $N play.cjs ask ::1 30080 4
      $N play.cjs ask 127.0.0.1 30081 20 | grep -c ' '
      $N play.cjs ask 127.0.0.1 30082 20
      $N play.cjs ask 127.0.0.1 30083 1
      $N play.cjs ask 127.0.0.2 30080 1
      $N play.cjs ask 172.18.0.1 30080 1 >primary && echo primary
      $N play.cjs datagram 127.0.0.1 30084
      $N play.cjs get http://127.0.0.1:10249/metrics | grep '^kubeproxy_nftables_localhost.*IPv4'
      # Another start without loopback: refused at once, and nothing of it is left.
      kill $P; wait $P; ${RUN("nft", "primary")}
      $N play.cjs until 172.18.0.1 30080
      $N play.cjs ask 127.0.0.1 30080 1
      for i in $(seq 1 200); do nft list ruleset | grep -q 'refuse-on-loopback' || break; sleep 0.1; done
      nft list ruleset | grep -c refuse-on-loopback`,
    );
    expect(out.trimEnd().split("\n")).toEqual([
      "here there",
      "here",
      "0",
      "here",
      "ECONNREFUSED",
      "ECONNREFUSED",
      "primary",
      "refused",
      'kubeproxy_nftables_localhost_nodeport_listeners{ip_family="IPv4"} 4',
      'kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total{ip_family="IPv4"} 0',
      'kubeproxy_nftables_localhost_nodeport_rejected_packets_total{protocol="UDP",ip_family="IPv4"} 1',
      'kubeproxy_nftables_localhost_nodeport_rejected_packets_total{protocol="SCTP",ip_family="IPv4"} 0',
      "ECONNREFUSED",
      "0",
    ]);
  });

  test.each(BACKENDS)("%s: what answers on loopback", async (backend) => {
    const { out } = await scriptInNamespace(
      { "web.yaml": SERVICES, "play.cjs": PROGRAM },
      `${HOST}
      ${RUN(backend, "localhost")}
      $N play.cjs until 127.0.0.1 30080
      $N play.cjs ask ::1 30080 4
      $N play.cjs ask 172.18.0.1 30080 1
      grep -o 'node ports do not answer on loopback' log | sort -u`,
    );
    const warned = "node ports do not answer on loopback";
    const isIptables = backend.startsWith("iptables");
    expect(out.trimEnd().split("\n")).toEqual([isIptables ? "ECONNREFUSED" : "here", "ECONNREFUSED", ...(isIptables ? [warned] : [])]);
  });

  test(
    "ebpf: TCP is answered, UDP of this host is refused and counted, and that of pods is their own",
    needs("bpf", "cgroup2"),
    async () => {
      const { out } = await scriptInNamespace(
        { "web.yaml": SERVICES, "play.cjs": PROGRAM },
        `mount -t bpf bpf /sys/fs/bpf
      C="$(sed -n 's/^.* \\(\\/[^ ]*\\) .* - cgroup2 .*/\\1/p' /proc/self/mountinfo | head -1)$(sed -n 's/^0:://p' /proc/self/cgroup)/turnout-loopback-$$"
      mkdir "$C"
      within() { sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$C" "$@"; }
      ${HOST}
      ${RUN('ebpf --backend-option cgroup="$C"', "localhost")}
      $N play.cjs heard 127.0.0.1 30084 & H=$!
      trap 'kill $S $P $H; wait; rmdir "$C"' EXIT
      $N play.cjs until 127.0.0.1 30080
      within $N play.cjs ask ::1 30080 4
      within $N play.cjs datagram 127.0.0.1 30084
      within unshare -n sh -c 'ip link set lo up; "$0" play.cjs heard 127.0.0.1 30084 & sleep 1; "$0" play.cjs datagram 127.0.0.1 30084; kill $!' $N
      $N play.cjs get http://127.0.0.1:10249/metrics | grep -o '^kubeproxy_nftables_localhost_nodeport_rejected.*IPv4.*'`,
      );
      expect(out.trimEnd().split("\n")).toEqual([
        "here",
        "refused",
        "answered",
        'kubeproxy_nftables_localhost_nodeport_rejected_packets_total{protocol="UDP",ip_family="IPv4"} 1',
      ]);
    },
  );

  test("a port that another program has is logged, and answered once it is free", async () => {
    const { out } = await scriptInNamespace(
      { "web.yaml": SERVICES, "play.cjs": PROGRAM },
      `${HOST}
      $N play.cjs hold 127.0.0.1 30080 & H=$!
      $N play.cjs until 127.0.0.1 30080
      ${RUN("nft", "localhost")}
      $N play.cjs until 127.0.0.1 30082
      until grep -q "can't be opened on loopback" log; do sleep 0.1; done
      kill $H; wait $H
      $N play.cjs until 127.0.0.1 30080
      $N play.cjs ask 127.0.0.1 30080 40
      grep -c "can't be opened on loopback" log`,
    );
    expect(out).toBe("here there\n1\n");
  });
});

/** `serve` answers with where it is; `ask` prints who answered so many connections, each once; `until` waits for an answer. */
const PROGRAM = `
const { connect, createServer } = require("node:net");
const { createSocket } = require("node:dgram");
const [, , what, ip, port, count] = process.argv;
const NAMES = { "10.1.1.5": "here", "fd00:1:1::5": "here", "10.1.2.6": "there" };
const ask = () => new Promise((done) => {
  let text = "";
  const socket = connect({ host: ip, port: Number(port) });
  socket.on("data", (data) => (text += data)).on("end", () => socket.end()).on("close", () => done(text || "nothing")).on("error", ({ code }) => done(code));
});
const all = async () => {
  const seen = new Set();
  for (let left = Number(count); left > 0; left--) seen.add(await ask());
  console.log([...seen].sort().join(" "));
};
const until = async () => {
  for (let left = 600; left > 0; left--) {
    const got = await ask();
    if (got !== "ECONNREFUSED" && got !== "nothing") return;
    await new Promise((done) => setTimeout(done, 50));
  }
  console.log("never answered", ip, port);
};
const actions = {
  serve: () => { for (const at of Object.keys(NAMES)) createServer((socket) => socket.on("error", () => {}).end(NAMES[at])).listen(8080, at); },
  hold: () => void createServer((socket) => socket.end("held")).listen(Number(port), ip),
  ask: all,
  until,
  get: async () => console.log(await (await fetch(ip)).text()),
  heard: () => void createSocket("udp4").on("message", function (data, { port: to, address }) { this.send(data, to, address); }).bind(Number(port), ip),
  datagram: () => {
    const socket = createSocket("udp4");
    const refused = () => { console.log("refused"); socket.close(); };
    socket.on("error", refused).on("message", () => { console.log("answered"); socket.close(); });
    socket.connect(Number(port), ip, (error) => (error ? refused() : socket.send("x", (failed) => failed && refused())));
  },
};
void actions[what]();
`;

interface Short {
  readonly port: number;
  readonly spec?: string;
  readonly protocol?: string;
}

function serviceOf(
  name: string,
  { port, spec = "{}", protocol = "TCP" }: Short,
  endpoints: readonly (readonly [string, string])[],
): string {
  const number = port - 30_000;
  const own = spec === "{}" ? "" : `\n  ${spec}`;
  const slice = (family: "IPv4" | "IPv6"): string => {
    const ofFamily = endpoints.filter(([ip]) => ip.includes(":") === (family === "IPv6"));
    return `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-${family.toLowerCase()}, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: ${family}
ports: [{name: p, port: 8080, protocol: ${protocol}}]
endpoints: [${ofFamily.map(([ip, node]) => `{addresses: ["${ip}"], nodeName: ${node}, conditions: {ready: true}}`).join(", ")}]
`;
  };
  return `---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
  type: NodePort
  clusterIP: 10.96.0.${number}
  clusterIPs: [10.96.0.${number}, "fd00:96::${number}"]
  ipFamilies: [IPv4, IPv6]${own}
  ports: [{name: p, port: 80, protocol: ${protocol}, targetPort: 8080, nodePort: ${port}}]
${slice("IPv4")}${slice("IPv6")}`;
}

const HERE = ["10.1.1.5", "node1"] as const;
const HERE6 = ["fd00:1:1::5", "node1"] as const;
const THERE = ["10.1.2.6", "node2"] as const;
const SERVICES = `apiVersion: v1
kind: Node
metadata: {name: node1}
spec: {podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 172.18.0.1}]}
${serviceOf("web", { port: 30_080 }, [HERE, HERE6, THERE])}
${serviceOf("affine", { port: 30_081, spec: "sessionAffinity: ClientIP" }, [HERE, THERE])}
${serviceOf("local", { port: 30_082, spec: "externalTrafficPolicy: Local" }, [HERE, THERE])}
${serviceOf("away", { port: 30_083, spec: "externalTrafficPolicy: Local" }, [THERE])}
${serviceOf("far", { port: 30_085 }, [["10.1.3.7", "node2"]])}
${serviceOf("dns", { port: 30_084, protocol: "UDP" }, [HERE])}
`;

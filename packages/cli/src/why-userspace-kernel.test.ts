import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptInNamespace } from "./test-support/namespace.ts";

/** A Service whose one endpoint is a pod that is its client, too. */
const SHOP = `
apiVersion: v1
kind: Node
metadata: {name: node1}
status: {addresses: [{type: InternalIP, address: 172.18.0.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {type: NodePort, clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ipFamilies: [IPv4], ports: [{name: http, port: 80, nodePort: 30080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.1.1.9], nodeName: node1, conditions: {ready: true}}]
`;
const RUN =
  "--source file:shop.yaml --backend userspace --node-name node1 --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s --conntrack-tcp-timeout-close-wait 0s --oom-score-adj 0 >log.txt 2>&1";
const POD = `unshare -n sleep 110 & POD=$!
  ip link add veth1 type veth peer name pod0
  until [ "$(readlink /proc/$POD/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
  ip link set pod0 netns $POD; ip link set veth1 up; ip route add 10.1.1.9 dev veth1
  IN="nsenter -t $POD -n"
  $IN sh -ec 'ip link set lo up; ip address add 10.1.1.9/32 dev pod0; ip link set pod0 up; ip route add 172.18.0.1 dev pod0; ip route add default via 172.18.0.1'
  $IN $N -e 'require("http").createServer((q, a) => a.end("cart")).listen(8080)' & SERVER=$!`;

/** What is done to the node, and undone, and what a client then asks for. */
const CASES = {
  whole: ["true", "true", "10.96.0.10:80"],
  forward: ["iptables-nft -P FORWARD DROP", "iptables-nft -P FORWARD ACCEPT", "172.18.0.1:30080"],
  nodePort: ["iptables-nft -I INPUT -p tcp -d 172.18.0.1 --dport 30080 -j DROP", "iptables-nft -F", "172.18.0.1:30080"],
  endpoint: ["iptables-nft -I OUTPUT -d 10.1.1.9 -p tcp --dport 8080 -j DROP", "iptables-nft -F", "10.96.0.10:80"],
  policy: [
    "iptables-nft -A INPUT -i lo -j ACCEPT; iptables-nft -P INPUT DROP",
    "iptables-nft -P INPUT ACCEPT; iptables-nft -F",
    "10.96.0.10:80",
  ],
  other: [
    "nft 'add table ip turnout; add map ip turnout services { type ipv4_addr . inet_proto . inet_service : verdict; }; add chain ip turnout nat-prerouting { type nat hook prerouting priority -100; }; add rule ip turnout nat-prerouting ip daddr 10.96.0.10 dnat to 10.1.1.99'",
    "nft delete table ip turnout",
    "10.96.0.10:80",
  ],
} as const;

type Reported = Readonly<Record<"curl" | "why" | "doctor", string>>;

describe(
  "userspace, whose process answers",
  { ...needs("root", "netns", "nft>=1.0.1", "iptables-nft", "ip", "nsenter"), timeout: 120_000 },
  () => {
    let reported: ReadonlyMap<string, Reported>;

    beforeAll(async () => {
      const asked = Object.entries(CASES).map(
        ([name, [inject, fix, target]]) => `${inject}
        echo "== ${name} curl"; $IN curl -s -m 2 http://${target}/; echo
        echo "== ${name} why"; $T why 10.1.1.9 ${target} 2>&1; echo "exit code $?"
        echo "== ${name} doctor"; $T doctor 2>&1
        ${fix}`,
      );
      const script = `${POD}
      $T run ${RUN} & P=$!
      until $T status >/dev/null 2>&1; do kill -0 $P || exit 9; sleep 0.2; done
      until $IN curl -s -m 1 http://10.96.0.10/ >/dev/null; do sleep 0.2; done
      ${asked.join("\n")}
      kill $P $SERVER $POD; wait`;
      const { out } = await scriptInNamespace({ "shop.yaml": SHOP }, script);
      const parts = [...out.matchAll(/^== (\w+) (\w+)\n([^]*?)(?=^== |$(?![^]))/gm)];
      reported = new Map(
        Object.keys(CASES).map((name) => [
          name,
          Object.fromEntries(parts.filter(([, of]) => of === name).map(([, , what = "", text = ""]) => [what, text.trim()])) as Reported,
        ]),
      );
    }, 120_000);

    const of = (name: keyof typeof CASES): Reported => reported.get(name) ?? { curl: "", why: "", doctor: "" };

    it("has both connections told, and is named as the backend in use", () => {
      const { curl, why, doctor } = of("whole");
      expect(curl).toBe("cart");
      expect(why).toContain("the proxy's process answers it: the packet is for this host itself");
      expect(why).toContain("to 10.96.0.10:80: a program of this host takes it");
      expect(why).toContain("to 10.1.1.9:8080: it leaves by veth1");
      expect(why).toContain("the proxy's process has all that it needs for this");
      expect(why).not.toContain("masquerade)");
      expect(why).toMatch(/^nothing wrong was found on this node$[^]*exit code 0$/m);
      expect(doctor).toMatch(/^backends +userspace +in use/m);
    });

    it("needs no forwarding, which is off here, and is forbidden besides", () => {
      const { curl, why, doctor } = of("forward");
      expect(curl).toBe("cart");
      expect(why).toMatch(/exit code 0$/);
      expect(doctor).not.toContain("FAULT");
      expect(doctor).toMatch(/^risk +another program's rules drop every new connection there: packets of pods to pods/m);
      expect(doctor).toMatch(/^risk +this host forwards no IPv4 packets: .* Services don't need it/m);
    });

    it.each<readonly [keyof typeof CASES, string, readonly string[]]>([
      ["nodePort", "drops the packet at input (-A INPUT", ["iptables -t filter -I INPUT -d 172.18.0.1 -p tcp --dport 30080 -j ACCEPT"]],
      ["endpoint", "drops the packet at output", ["iptables -t filter -I OUTPUT -d 10.1.1.9 -p tcp --dport 8080 -j ACCEPT"]],
      [
        "policy",
        "drops the packet at input",
        [
          "iptables -t filter -I INPUT -d 10.96.0.10 -p tcp --dport 80 -j ACCEPT",
          "iptables -t filter -I INPUT -s 10.1.1.9 -p tcp --sport 8080 -j ACCEPT",
        ],
      ],
    ])("names what is dropped: %s", (name, says, commands) => {
      const { curl, why } = of(name);
      expect(curl).toBe("");
      expect(why.replaceAll(/\n +/g, " ")).toContain(says);
      expect(commands.filter((command) => !why.includes(`  ${command}\n`))).toEqual([]);
      expect(why).toMatch(/exit code 1$/);
    });

    it("INPUT's policy is named, and no rule about translated packets is what mends it", () => {
      const { doctor } = of("policy");
      expect(doctor).toMatch(/^risk +another program's rules drop packets to this host unless they know them: Services are answered/m);
      expect(doctor).toContain("iptables-nft -t filter -I INPUT -p tcp --dport 30000:32767 -j ACCEPT");
      expect(doctor).not.toContain("--ctstate DNAT");
    });

    it("names the table that another backend left, by which packets go before", () => {
      const { curl, why, doctor } = of("other");
      expect(curl).toBe("");
      expect(why).toMatch(/^culprit: another service proxy has rules in force on this node: table ip turnout/m);
      expect(doctor).toMatch(/^FAULT +rules of several of Turnout's backends are in force/m);
      expect(doctor).toMatch(/^backends +userspace +in use[^]*^ +nft +has rules in force/m);
    });
  },
);

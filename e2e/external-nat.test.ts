import { RANGES } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

/** What another program's rules are written with. */
interface Ground {
  readonly nodePort: number;
  /** The node's address. */
  readonly node: string;
  /** The address and device of pod-1-3, to which host ports lead. */
  readonly pod: string;
  readonly device: string;
}

/** Rules that another program adds to nat, and what has to become of packets next to them. */
interface Neighbour {
  readonly name: string;
  /** A script for node1's shell; everything is in tables of the family `ip` that are deleted afterwards, or in `inet cni_hostport`. */
  readonly rules: (ground: Ground) => string;
  readonly expected: Readonly<Record<string, string>>;
}

/** A port of the host that no Service has. */
const OTHER_PORT = 8090;
const PODS = RANGES.pods.IPv4;

const restore = (table: string, ...lines: readonly string[]): string =>
  `iptables-nft-restore --noflush <<'X'\n*${table}\n${lines.join("\n")}\nCOMMIT\nX`;

const nft = (...statements: readonly string[]): string => `nft -f - <<'X'\n${statements.join("\n")}\nX`;

const HOST_PORTS = {
  "client1 nodePort@node1": "pod-1-1 saw node1",
  "client1 loadBalancerIP": "pod-1-1 saw node1",
  "node1 nodePort@node1": "pod-1-1 saw node1",
  [`client1 nodePort@node1 TCP ${OTHER_PORT}`]: "pod-1-3 saw client1",
};

const NEIGHBOURS: readonly Neighbour[] = [
  {
    name: "host ports of portmap, in iptables' nat",
    rules: ({ nodePort, pod }) =>
      restore(
        "nat",
        ...["SETMARK", "MASQ", "DNAT"].map((chain) => `:CNI-HOSTPORT-${chain} - [0:0]`),
        ":CNI-DN-0 - [0:0]",
        "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
        "-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
        "-A POSTROUTING -j CNI-HOSTPORT-MASQ",
        "-A CNI-HOSTPORT-SETMARK -j MARK --set-xmark 0x2000/0x2000",
        "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
        `-A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 80,${nodePort},${OTHER_PORT} -j CNI-DN-0`,
        `-A CNI-DN-0 -s ${pod} -p tcp -j CNI-HOSTPORT-SETMARK`,
        `-A CNI-DN-0 -p tcp -j DNAT --to-destination ${pod}:8080`,
      ),
    expected: HOST_PORTS,
  },
  {
    name: "host ports of portmap, in a table of nft",
    rules: ({ nodePort, pod }) =>
      nft(
        "add table inet cni_hostport",
        "add chain inet cni_hostport hostports",
        `add rule inet cni_hostport hostports tcp dport { 80, ${nodePort}, ${OTHER_PORT} } dnat ip to ${pod}:8080`,
        ...["prerouting", "output"].flatMap((hook) => [
          `add chain inet cni_hostport ${hook} { type nat hook ${hook} priority -100; }`,
          `add rule inet cni_hostport ${hook} fib daddr type local jump hostports`,
        ]),
        "add chain inet cni_hostport masquerading { type nat hook postrouting priority 100; }",
        `add rule inet cni_hostport masquerading ip saddr ${pod} ip daddr ${pod} masquerade`,
      ),
    expected: HOST_PORTS,
  },
  {
    name: "published ports of Docker 28, and its masquerade",
    rules: ({ nodePort, pod, device }) =>
      [
        restore("raw", `-A PREROUTING -d ${pod} ! -i ${device} -j DROP`),
        restore(
          "nat",
          ":DOCKER - [0:0]",
          "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER",
          "-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER",
          `-A POSTROUTING -s ${pod} ! -o ${device} -j MASQUERADE`,
          ...[nodePort, OTHER_PORT].map(
            (port) => `-A DOCKER ! -i ${device} -p tcp -m tcp --dport ${port} -j DNAT --to-destination ${pod}:8080`,
          ),
        ),
      ].join("\n"),
    expected: {
      "client1 nodePort@node1": "pod-1-1 saw node1",
      "node1 nodePort@node1": "pod-1-1 saw node1",
      "pod-1-3 clusterIP": "pod-1-1 saw node1",
      [`client1 nodePort@node1 TCP ${OTHER_PORT}`]: "pod-1-3 saw client1",
    },
  },
  {
    name: "Calico's natOutgoing",
    rules: () =>
      [
        "ipset create cali40masq-ipam-pools hash:net; ipset create cali40all-ipam-pools hash:net",
        `ipset add cali40masq-ipam-pools ${PODS}; ipset add cali40all-ipam-pools ${PODS}`,
        restore(
          "nat",
          ":cali-POSTROUTING - [0:0]",
          ":cali-nat-outgoing - [0:0]",
          "-I POSTROUTING -j cali-POSTROUTING",
          "-A cali-POSTROUTING -j cali-nat-outgoing",
          "-A cali-nat-outgoing -m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40all-ipam-pools dst -j MASQUERADE --random-fully",
        ),
      ].join("\n"),
    expected: {
      "pod-1-2 clusterIP": "pod-1-1 saw pod-1-2",
      "pod-1-2 nodePort@node1": "pod-1-1 saw node1",
      "client1 clusterIP": "pod-1-1 saw node1",
    },
  },
  {
    name: "the AWS CNI's marks of what leaves the VPC",
    rules: ({ node }) =>
      restore(
        "nat",
        ...["AWS-CONNMARK-CHAIN-0", "AWS-CONNMARK-CHAIN-1", "AWS-SNAT-CHAIN-0"].map((chain) => `:${chain} - [0:0]`),
        "-A PREROUTING -i veth+ -j AWS-CONNMARK-CHAIN-0",
        "-A PREROUTING -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80",
        "-A POSTROUTING -j AWS-SNAT-CHAIN-0",
        `-A AWS-CONNMARK-CHAIN-0 ! -d ${PODS} -j AWS-CONNMARK-CHAIN-1`,
        "-A AWS-CONNMARK-CHAIN-1 -j CONNMARK --set-xmark 0x80/0x80",
        `-A AWS-SNAT-CHAIN-0 -d ${PODS} -j RETURN`,
        `-A AWS-SNAT-CHAIN-0 ! -o vlan+ -m addrtype ! --dst-type LOCAL -j SNAT --to-source ${node} --random-fully`,
      ),
    expected: {
      "pod-1-2 clusterIP": "pod-1-1 saw pod-1-2",
      "client1 clusterIP": "pod-1-1 saw node1",
      "client1 loadBalancerIP": "pod-1-1 saw node1",
    },
  },
  {
    name: "a source that is rewritten before ours",
    rules: ({ node }) =>
      nft(
        "add table ip early",
        "add chain ip early out { type nat hook postrouting priority 90; }",
        `add rule ip early out ip daddr ${PODS} tcp dport 8080 snat to ${node}`,
      ),
    expected: { "client1 nodePort@node1": "pod-1-1 saw node1", "client1 clusterIP": "pod-1-1 saw node1" },
  },
];

/** Counts what leaves with the mark that asks for masquerade. */
const LEAKS = nft(
  "add table ip seen",
  "add chain ip seen last { type filter hook postrouting priority 300; }",
  "add rule ip seen last meta mark & 0x4000 == 0x4000 counter",
);
const TAKE_DOWN = `nft list tables | grep -v turnout | sed 's/^/delete /' | nft -f -; ipset destroy`;

/**
 * All nat chains of a hook run in one hook of the kernel, in the order of their priorities; at one priority the chain that was made last comes first.
 * So Turnout's table is tried from before and from after the other program's.
 */
describe(
  "nat next to rules of another program",
  { ...needs("root", "ip", "conntrack", "nft>=1.0.1", "iptables-nft>=1.8.0", "ipset"), timeout: 120_000 },
  () => {
    let site: Site;
    let service: TestService;
    const sh = async (script: string): Promise<string> => (await site.cluster.node("node1").run("sh", ["-ec", script])).stdout;
    beforeAll(async () => {
      site = await createSite({ layout: "one process", nodes: [{ name: "node1", zone: "zone-a", pods: 3 }], families: ["IPv4"] });
      service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
      // As where a load balancer of the node's own announces it.
      await sh(`ip address add ${service.target("loadBalancerIP", "IPv4").address}/32 dev lo scope host`);
    });
    afterAll(() => site?.destroy());

    it.each(NEIGHBOURS.flatMap((one) => (["first", "last"] as const).map((order) => ({ ...one, order }))))(
      "$name, made $order",
      async ({ rules, expected, order }) => {
        const { address: clusterIP, port } = service.target("clusterIP", "IPv4");
        const { address: node, port: nodePort } = service.target("nodePort@node1", "IPv4");
        await sh("conntrack -F");
        try {
          await sh(`${LEAKS}\n${rules({ nodePort, node, pod: site.place("pod-1-3").address("IPv4"), device: "veth3" })}`);
          // Turnout makes its table again.
          if (order === "first") await sh("nft delete table ip turnout");
          await expect.poll(() => sh(`nft get element ip turnout services '{ ${clusterIP} . tcp . ${port} }' || true`)).toContain("goto");
          expect(await reachAll(site, service, "IPv4", expected)).toEqual(expected);
          const flows = await sh(`conntrack -L -d ${clusterIP}; conntrack -L -d ${node} -p tcp --dport ${nodePort}`);
          expect(flows).toContain("mark=0");
          expect(flows).not.toMatch(/mark=(?!0\b)/);
          expect(await sh("nft list chain ip seen last")).toContain("counter packets 0 ");
        } finally {
          await sh(TAKE_DOWN);
        }
      },
    );
  },
);

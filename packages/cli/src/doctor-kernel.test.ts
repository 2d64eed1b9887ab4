import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, test } from "vitest";
import { diagnosisText, type Diagnosis } from "./commands/doctor/doctor-report.ts";
import type { Situation, Reported } from "./test-support/doctor-child.ts";

const CHILD = fileURLToPath(new URL("test-support/doctor-child.ts", import.meta.url));
/** What the real kube-proxy wrote (bench/kube-proxy/record.ts), without rules whose counters the kernel would have to be given first. */
const KUBE_PROXY = `grep -v nfacct ${fileURLToPath(new URL("../../backend-iptables/test/kube-proxy/masquerade-all.IPv4.save", import.meta.url))}`;
const FLUSH_NFT = "nft flush ruleset";
/** The legacy variant's tables stay, empty. */
const FLUSH_LEGACY = "for t in filter nat; do iptables-legacy -t $t -F; iptables-legacy -t $t -X; done; iptables-legacy -P FORWARD ACCEPT";
const FIREWALLD = `nft -f - <<'N'
table inet firewalld {
  chain filter_FORWARD {
    type filter hook forward priority 10; policy accept;
    ct state { established, related } accept
    iifname "lo" accept
    jump filter_FORWARD_POLICIES
    reject with icmpx admin-prohibited
  }
  chain filter_FORWARD_POLICIES { iifname "trusted0" accept
  }
}
N`;
const PORTMAP = `iptables-nft-restore <<'N'
*nat
:PREROUTING ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-DN-0123456789abcdef - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-DNAT -p tcp --dport 30080 -j CNI-DN-0123456789abcdef
-A CNI-DN-0123456789abcdef -p tcp --dport 30080 -j DNAT --to-destination 10.1.0.2:80
COMMIT
N`;

/** A device with a route to other hosts. */
const UPLINK =
  "ip link add up0 type veth peer name up1; ip link set up0 up; ip link set up1 up; ip addr add 192.0.2.1/24 dev up0; ip route add default via 192.0.2.2";

/** Devices whose other ends are in another network namespace. */
const PODS =
  'unshare -n sleep 60 >/dev/null 2>&1 & P=$!; echo $P >/tmp/turnout-doctor-pods; until [ "$(readlink /proc/$P/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done; for n in 1 2; do ip link add pod$n type veth peer name end$n; ip link set end$n netns $P; ip link set pod$n up; nsenter -t $P -n ip link set end$n up; done';

/** By name: what is done before and after, and what is to be found, each with words that its evidence has. */
const CASES: readonly (Situation & { readonly finds: Readonly<Record<string, string>> })[] = [
  { name: "a clean host", before: "true", after: "true", finds: {} },
  {
    name: "forwarding is off",
    before: "sysctl -qw net.ipv4.ip_forward=0",
    after: "sysctl -qw net.ipv4.ip_forward=1",
    finds: { "fault ipv4-forwarding-off": "net.ipv4.ip_forward is 0" },
  },
  {
    name: "forwarding of IPv6 is off, and there are IPv6 Services",
    before: "sysctl -qw net.ipv6.conf.all.forwarding=0",
    after: "true",
    status: {
      kind: "proxy",
      backend: "nft",
      health: { isHealthy: true, isEligible: true, reason: "" },
      sourceProblems: {},
      families: [{ family: "IPv6", services: 1 }],
    },
    finds: { "fault ipv6-forwarding-off": "the proxy serves IPv6 Services" },
  },
  {
    name: "strict reverse paths",
    before: "sysctl -qw net.ipv4.conf.eth0.rp_filter=1",
    after: "sysctl -qw net.ipv4.conf.eth0.rp_filter=0",
    finds: { "risk rp-filter-strict": "for eth0" },
  },
  {
    name: "a foreign chain that drops what is forwarded",
    before: "nft add table ip mine; nft 'add chain ip mine gate { type filter hook forward priority 5; policy drop; }'",
    after: FLUSH_NFT,
    finds: { "fault drops-forward": "chain ip mine gate has the policy drop" },
  },
  {
    name: "a foreign chain that drops one port",
    before:
      "nft add table ip mine; nft 'add chain ip mine gate { type filter hook forward priority 5; }'; nft add rule ip mine gate tcp dport 23 drop",
    after: FLUSH_NFT,
    finds: {},
  },
  {
    name: "a firewall like firewalld",
    before: FIREWALLD,
    after: FLUSH_NFT,
    finds: { "risk drops-forward": "chain inet firewalld filter_FORWARD ends with a rule that drops all" },
  },
  {
    name: "Docker's policy in the legacy variant",
    before: "iptables-legacy -N DOCKER; iptables-legacy -P FORWARD DROP; iptables-legacy -A FORWARD -o docker0 -j DOCKER",
    after: FLUSH_LEGACY,
    finds: { "fault drops-forward": "iptables-legacy chain FORWARD" },
  },
  {
    name: "legacy and nf_tables mixed",
    before: "iptables-legacy -A INPUT -p tcp --dport 22 -j ACCEPT; iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT",
    after: `${FLUSH_LEGACY}; ${FLUSH_NFT}`,
    finds: { "risk iptables-mixed": "legacy: ip filter; nf_tables: ip filter" },
  },
  {
    name: "what a kube-proxy left",
    before: `${KUBE_PROXY} | iptables-nft-restore`,
    after: FLUSH_NFT,
    finds: { "risk kube-proxy-leftover": "KUBE-" },
  },
  {
    name: "what a kube-proxy left beside a table of Turnout's",
    before: `${KUBE_PROXY} | iptables-nft-restore; nft add table ip turnout; nft add chain ip turnout dispatch`,
    after: FLUSH_NFT,
    finds: { "fault kube-proxy-leftover": "KUBE-", "fault turnout-not-running": "table ip turnout" },
  },
  {
    name: "a Turnout that died",
    before: "nft add table ip turnout; nft add chain ip turnout dispatch",
    after: FLUSH_NFT,
    finds: { "fault turnout-not-running": "table ip turnout" },
  },
  {
    name: "a Turnout with eBPF that died, and whose pins were removed",
    before: "nft add table inet turnout-ebpf; nft 'add chain inet turnout-ebpf out { type filter hook postrouting priority 0; }'",
    after: FLUSH_NFT,
    finds: { "fault turnout-gone": "table inet turnout-ebpf" },
  },
  {
    name: "nothing is forwarded from an uplink",
    before: `${UPLINK}; iptables-nft -I FORWARD -i up0 -j REJECT`,
    after: `ip link del up0; ${FLUSH_NFT}`,
    finds: {
      "fault drops-device":
        "iptables-nft chain FORWARD of table filter has the rule -A FORWARD -i up0 -j REJECT --reject-with icmp-port-unreachable",
    },
  },
  {
    name: "nothing goes to pods, behind the routing decision",
    before: `${UPLINK}; ${PODS}; nft 'add table inet mine; add chain inet mine gate { type filter hook postrouting priority 0; policy drop; }; add rule inet mine gate oifname { lo, up0 } accept'`,
    after: `ip link del up0; ip link del pod1; ip link del pod2; kill $(cat /tmp/turnout-doctor-pods); rm /tmp/turnout-doctor-pods; ${FLUSH_NFT}`,
    finds: { "fault drops-device": "chain inet mine gate has the policy drop, and no rule accepts them" },
  },
  {
    name: "no default route",
    before: "ip link set eth0 up; ip addr add 192.0.2.1/24 dev eth0",
    after: "ip addr flush dev eth0",
    finds: {
      "risk no-default-route": "no default IPv4 route; one for the service range would do, which is known only while the proxy answers",
    },
  },
  {
    name: "a default route that refuses",
    before: "ip link set eth0 up; ip addr add 192.0.2.1/24 dev eth0; ip route add unreachable default",
    after: "ip route del unreachable default; ip addr flush dev eth0",
    finds: { "risk no-default-route": "the route unreachable default" },
  },
  {
    name: "a proxy whose Node object is unknown",
    before: "true",
    after: "true",
    status: {
      kind: "proxy",
      node: "n1",
      backend: "nft",
      health: { isHealthy: true, isEligible: false, reason: "this node's Node object is unknown" },
      sourceProblems: {},
      families: [{ family: "IPv4", services: 1 }],
    },
    finds: { "risk not-for-load-balancers": "its name is n1" },
  },
  {
    name: "portmap, whose rules come behind ours",
    before: PORTMAP,
    after: FLUSH_NFT,
    finds: {},
  },
  {
    name: "portmap, which has a node port first where a process serves",
    before: PORTMAP,
    after: FLUSH_NFT,
    status: {
      kind: "proxy",
      backend: "userspace",
      health: { isHealthy: true, isEligible: true, reason: "" },
      sourceProblems: {},
      families: [{ family: "IPv4", services: 1 }],
    },
    finds: { "risk translates-first": "nat PREROUTING: CNI-HOSTPORT-DNAT" },
  },
  {
    name: "a chain that translates before ours",
    before:
      "nft add table ip mine; nft 'add chain ip mine early { type nat hook prerouting priority -110; }'; nft add rule ip mine early tcp dport 30080 dnat to 10.1.1.5",
    after: FLUSH_NFT,
    finds: { "risk translates-first": "chain ip mine early (priority -110)" },
  },
];

/** Forwards, and has a device. */
const HOST = "ip link set lo up; ip link add eth0 type veth peer name peer0; sysctl -qw net.ipv4.ip_forward=1";

describe(
  "turnout doctor",
  { ...needs("root", "netns", "ip", "sysctl", "nft>=1.0.1", "iptables-nft>=1.8.0", "iptables-legacy"), timeout: 120_000 },
  () => {
    let reported: ReadonlyMap<string, Reported>;
    beforeAll(async () => {
      const node = `${process.execPath} --conditions=@turnout/source --disable-warning=ExperimentalWarning ${CHILD}`;
      const child = spawn("unshare", ["-n", "sh", "-ec", `${HOST}; exec ${node}`], { stdio: ["pipe", "pipe", "inherit"] });
      const closed = once(child, "close");
      child.stdin.end(JSON.stringify(CASES));
      const out = await text(child.stdout);
      await closed;
      reported = new Map((JSON.parse(out) as readonly Reported[]).map((one) => [one.name, one]));
    }, 120_000);

    test.each(CASES)("$name", ({ name, finds }) => {
      const { code, out } = reported.get(name) ?? { code: -1, out: "{}" };
      const { findings } = JSON.parse(out) as Diagnosis;
      const serious = findings.filter(({ severity }) => severity !== "note");
      expect(Object.fromEntries(serious.map(({ severity, id, because }) => [`${severity} ${id}`, because]))).toEqual(
        Object.fromEntries(Object.entries(finds).map(([id, words]) => [id, expect.stringContaining(words) as unknown])),
      );
      expect(code).toBe(Object.keys(finds).some((id) => id.startsWith("fault")) ? 1 : 0);
    });

    test("prints a foreign rule as nft does", () => {
      const { findings } = JSON.parse(reported.get("a foreign chain that drops one port")?.out ?? "{}") as Diagnosis;
      expect(findings.find(({ id }) => id === "drops-some")?.because).toBe("table ip mine, chain gate: tcp dport 23 drop");
    });

    test("says it on one screen, with what mends it and who else writes rules", () => {
      const { out } = reported.get("what a kube-proxy left beside a table of Turnout's") ?? { out: "{}" };
      const shown = diagnosisText(JSON.parse(out) as Diagnosis);
      expect(shown.split("\n").length).toBeLessThan(30);
      expect(shown).toMatch(
        /^FAULT {2}Turnout's rules are here, and no Turnout runs.*\n +seen: table ip turnout\n +mend: start it: .*turnout cleanup/m,
      );
      expect(shown).toMatch(/^FAULT {2}rules of kube-proxy decide about packets.*\n +seen: .*\n +mend: turnout run/m);
      expect(shown).toMatch(/^rules by +Turnout \(table ip turnout\)\n +kube-proxy \(chain KUBE-/m);
    });
  },
);

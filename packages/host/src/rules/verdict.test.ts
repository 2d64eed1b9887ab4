import { describe, expect, it, test } from "vitest";
import { readIptablesTable } from "../iptables/rules/listed-rules.ts";
import { readNftTable } from "../nft/read-rules.ts";
import type { ExternalTable } from "./rule.ts";
import { newPacket, translatingRules, verdictOf } from "./verdict.ts";
import type { Unmarked } from "./verdict.ts";

const NEW = newPacket("IPv4");

/** What becomes of packets in a chain, and where it is decided. */
function reported(table: ExternalTable, chain: string, known: Partial<Unmarked> = {}): string {
  const base = table.chains.get(chain);
  if (base === undefined) throw new Error(`no chain ${chain}`);
  const { is, chain: where, rule } = verdictOf(table, base, { ...NEW, ...known });
  return [is, ...(where === undefined ? [] : [where, rule === undefined ? "policy" : rule.text])].join(" | ");
}

const filter = (text: string): ExternalTable => readIptablesTable("iptables", "filter", text);

/** As `ufw enable` writes it, shortened. */
const UFW = filter(`:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:ufw-before-forward - [0:0]
:ufw-user-forward - [0:0]
:ufw-after-logging-forward - [0:0]
:ufw-reject-forward - [0:0]
:ufw-before-input - [0:0]
:ufw-user-input - [0:0]
-A INPUT -j ufw-before-input
-A FORWARD -j ufw-before-forward
-A FORWARD -j ufw-after-logging-forward
-A FORWARD -j ufw-reject-forward
-A ufw-after-logging-forward -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "
-A ufw-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-forward -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-forward -j ufw-user-forward
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-before-input -j ufw-user-input
-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT
`);

/** As Docker 28 writes it, shortened. */
const DOCKER = filter(`-P FORWARD DROP
-N DOCKER
-N DOCKER-BRIDGE
-N DOCKER-CT
-N DOCKER-FORWARD
-N DOCKER-ISOLATION-STAGE-1
-N DOCKER-ISOLATION-STAGE-2
-N DOCKER-USER
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-FORWARD
-A DOCKER ! -i docker0 -o docker0 -j DROP
-A DOCKER-BRIDGE -o docker0 -j DOCKER
-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-FORWARD -j DOCKER-CT
-A DOCKER-FORWARD -j DOCKER-ISOLATION-STAGE-1
-A DOCKER-FORWARD -j DOCKER-BRIDGE
-A DOCKER-FORWARD -i docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
`);

/** As Felix writes it for one pod with a policy, shortened. */
const CALICO = filter(`-P FORWARD ACCEPT
-N cali-FORWARD
-N cali-from-wl-dispatch
-N cali-fw-cali1
-N cali-pro-ns
-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
-A FORWARD -m comment --comment "cali:mp77cMpurHhyjLrM" -j MARK --set-xmark 0x10000/0x10000
-A cali-FORWARD -j MARK --set-xmark 0x0/0xe0000
-A cali-FORWARD -i cali+ -j cali-from-wl-dispatch
-A cali-from-wl-dispatch -i cali1 -g cali-fw-cali1
-A cali-from-wl-dispatch -m comment --comment "Unknown interface" -j DROP
-A cali-fw-cali1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A cali-fw-cali1 -m conntrack --ctstate INVALID -j DROP
-A cali-fw-cali1 -j MARK --set-xmark 0x0/0x10000
-A cali-fw-cali1 -p udp -m comment --comment "Drop VXLAN encapped packets originating in workloads" -m multiport --dports 4789 -j DROP
-A cali-fw-cali1 -j cali-pro-ns
-A cali-fw-cali1 -m mark --mark 0x10000/0x10000 -j RETURN
-A cali-fw-cali1 -m comment --comment "Drop if no profiles matched" -j DROP
-A cali-pro-ns -j MARK --set-xmark 0x10000/0x10000
-A cali-pro-ns -m mark --mark 0x10000/0x10000 -j RETURN
`);

const expr = (...statements: readonly unknown[]): readonly unknown[] => statements;
const state = (right: unknown, op = "in"): unknown => ({ match: { op, left: { ct: { key: "state" } }, right } });
const device = (key: string, right: string, op = "=="): unknown => ({ match: { op, left: { meta: { key } }, right } });
const jump = (target: string): unknown => ({ jump: { target } });
const REJECT = { reject: { type: "icmpx", expr: "admin-prohibited" } };
const [ACCEPT, DROP, RETURN] = [{ accept: null }, { drop: null }, { return: null }];

/** Chains by name, the first one called at forward. */
function nft(chains: Readonly<Record<string, readonly (readonly unknown[])[]>>, policy = "accept"): ExternalTable {
  const names = Object.keys(chains);
  const entries = names.flatMap((name, index) => [
    { chain: { name, ...(index === 0 ? { hook: "forward", prio: 0, type: "filter", policy } : {}) } },
    ...(chains[name] ?? []).map((one) => ({ rule: { chain: name, expr: one } })),
  ]);
  return readNftTable("inet", "t", { nftables: entries });
}

/** As firewalld 1.3 writes it, shortened; `nft -j` of it. */
const FIREWALLD = nft({
  filter_FORWARD: [
    expr(state({ set: ["established", "related"] }), ACCEPT),
    expr({ match: { op: "in", left: { ct: { key: "status" } }, right: "dnat" } }, ACCEPT),
    expr(device("iifname", "lo"), ACCEPT),
    expr(state("invalid"), DROP),
    expr(jump("filter_FORWARD_ZONES")),
    expr(REJECT),
  ],
  filter_FORWARD_ZONES: [
    expr(device("iifname", "eth0"), { goto: { target: "filter_FWD_public" } }),
    expr({ goto: { target: "filter_FWD_public" } }),
  ],
  filter_FWD_public: [expr(jump("filter_FWD_public_allow")), expr(REJECT)],
  filter_FWD_public_allow: [expr(device("oifname", "eth0"), ACCEPT)],
});

describe("what becomes of new connections of which nothing else is known", () => {
  test.each<readonly [name: string, table: ExternalTable, chain: string, known: Partial<Unmarked>, is: string]>([
    ["ufw forwards nothing", UFW, "FORWARD", {}, "none | FORWARD | policy"],
    ["ufw lets some in", UFW, "INPUT", {}, "some | INPUT | policy"],
    ["Docker forwards its own", DOCKER, "FORWARD", {}, "some | FORWARD | policy"],
    ["Docker, from an uplink", DOCKER, "FORWARD", { inDevice: "eth0" }, "none | FORWARD | policy"],
    ["Docker, from its bridge", DOCKER, "FORWARD", { inDevice: "docker0" }, "through"],
    ["Calico asks who it is", CALICO, "FORWARD", {}, "through"],
    ["Calico, from an uplink", CALICO, "FORWARD", { inDevice: "eth0" }, "through"],
    [
      "Calico, from a pod with a policy",
      CALICO,
      "FORWARD",
      { inDevice: "cali1" },
      'some | cali-fw-cali1 | -A cali-fw-cali1 -m comment --comment "Drop if no profiles matched" -j DROP',
    ],
    [
      "Calico, from a pod it doesn't know",
      CALICO,
      "FORWARD",
      { inDevice: "cali2" },
      'none | cali-from-wl-dispatch | -A cali-from-wl-dispatch -m comment --comment "Unknown interface" -j DROP',
    ],
    ["firewalld", FIREWALLD, "filter_FORWARD", {}, "some | filter_FWD_public | reject:type:icmpx,expr:admin-prohibited"],
    ["firewalld, what a Service translates", FIREWALLD, "filter_FORWARD", { isTranslated: true }, "through"],
    [
      "firewalld, to nowhere it knows",
      FIREWALLD,
      "filter_FORWARD",
      { isTranslated: false, inDevice: "eth1", outDevice: "eth1" },
      "none | filter_FWD_public | reject:type:icmpx,expr:admin-prohibited",
    ],
  ])("%s", (_name, table, chain, known, is) => {
    expect(reported(table, chain, known)).toBe(is);
  });

  it.each([
    ["nothing", "", "through"],
    ["one port", "-A FORWARD -p tcp --dport 23 -j DROP", "through"],
    ["what isn't new", "-A FORWARD -m conntrack --ctstate INVALID -j DROP", "through"],
    ["what is new, by a negation", "-A FORWARD -m conntrack ! --ctstate RELATED,ESTABLISHED -j DROP", "none"],
    ["a negation that can't be decided", "-A FORWARD ! -s 10.0.0.0/8 -j DROP", "through"],
    ["all but what a rule nobody knows accepts", "-A FORWARD -m bpf --bytecode 1 -j ACCEPT\n-A FORWARD -j DROP", "some"],
    [
      "a rule nobody knows doesn't negate the next",
      "-A FORWARD -m x ! --unknown y -m state --state NEW -j DROP\n-A FORWARD -j DROP",
      "none",
    ],
    ["all but what returns", "-N A\n-A FORWARD -j A\n-A A -s 10.0.0.0/8 -j RETURN\n-A A -j DROP", "some"],
    ["all, and what returns too", "-N A\n-A FORWARD -j A\n-A FORWARD -j DROP\n-A A -s 10.0.0.0/8 -j RETURN\n-A A -j DROP", "none"],
    ["all come back", "-N A\n-A FORWARD -j A\n-A FORWARD -j DROP\n-A A -j RETURN\n-A A -j ACCEPT", "none"],
    ["accepted first", "-A FORWARD -j ACCEPT\n-A FORWARD -j DROP", "through"],
    ["a goto doesn't come back", "-N A\n-A FORWARD -g A\n-A FORWARD -j DROP", "through"],
    ["a chain that isn't listed", "-A FORWARD -j ELSEWHERE\n-A FORWARD -j DROP", "some"],
    ["a quoted comment", '-A FORWARD -m comment --comment "-j ACCEPT" -j DROP', "none"],
  ])("of iptables: %s", (_name, rules, is) => {
    expect(reported(filter(`-P FORWARD ACCEPT\n${rules}`), "FORWARD").split(" | ")[0]).toBe(is);
  });

  it.each<readonly [name: string, rules: readonly (readonly unknown[])[], is: string]>([
    ["a counter decides nothing", [expr({ counter: {} }, DROP)], "none"],
    ["what is new", [expr(state(["new", "untracked"]), DROP)], "none"],
    ["what isn't", [expr(state("established", "!="), DROP)], "none"],
    ["what can't be printed", [expr({ xt: null }, DROP)], "through"],
    ["what can't be printed at all", [expr(null, DROP)], "through"],
    [
      "a verdict map of states",
      [
        expr({
          vmap: {
            key: { ct: { key: "state" } },
            data: {
              set: [
                ["established", ACCEPT],
                ["invalid", DROP],
              ],
            },
          },
        }),
        expr(DROP),
      ],
      "none",
    ],
    [
      "a verdict map of ports",
      [expr({ vmap: { key: { payload: { protocol: "tcp", field: "dport" } }, data: { set: [[80, ACCEPT]] } } }), expr(DROP)],
      "some",
    ],
    [
      "a verdict map that drops",
      [expr({ vmap: { key: { payload: { protocol: "tcp", field: "dport" } }, data: { set: [[80, DROP]] } } }), expr(DROP)],
      "none",
    ],
    ["a verdict map that isn't listed", [expr({ vmap: { key: { meta: { key: "mark" } }, data: "@m" } }), expr(DROP)], "some"],
    [
      "a set that isn't listed",
      [expr({ match: { op: "==", left: { payload: { protocol: "ip", field: "saddr" } }, right: "@s" } }, ACCEPT), expr(DROP)],
      "some",
    ],
    ["another family", [expr({ match: { op: "==", left: { meta: { key: "nfproto" } }, right: "ipv6" } }, DROP)], "through"],
    ["a circle", [expr(jump("base"))], "through"],
    ["a return", [expr(RETURN), expr(DROP)], "through"],
  ])("of nft: %s", (_name, rules, is) => {
    expect(reported(nft({ base: rules }), "base").split(" | ")[0]).toBe(is);
  });

  it("takes the policy of what returns", () => {
    expect(reported(nft({ base: [expr(RETURN)] }, "drop"), "base")).toBe("none | base | policy");
  });
});

describe("who translates", () => {
  const nat = readIptablesTable(
    "iptables",
    "nat",
    `-P PREROUTING ACCEPT
-N CNI-HOSTPORT-DNAT
-N CNI-DN-1
-N EMPTY
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -j EMPTY
-A PREROUTING -m conntrack --ctstate ESTABLISHED -j DNAT --to-destination 10.1.0.3:80
-A PREROUTING -p tcp --dport 81 -j REDIRECT --to-ports 82
-A CNI-HOSTPORT-DNAT -p tcp --dport 80 -j CNI-DN-1
-A CNI-DN-1 -p tcp -j DNAT --to-destination 10.1.0.2:80
-A EMPTY -j RETURN
`,
  );
  it("names the rules that lead there", () => {
    const chain = nat.chains.get("PREROUTING");
    expect(chain === undefined ? [] : translatingRules(nat, chain, NEW).map(({ text }) => text.split(" ").at(-1))).toEqual([
      "CNI-HOSTPORT-DNAT",
      "82",
    ]);
  });

  it("follows what a verdict map may choose", () => {
    const key = { payload: { protocol: "tcp", field: "dport" } };
    const table = nft({
      base: [expr({ vmap: { key, data: { set: [[80, { goto: { target: "host" } }]] } } })],
      host: [expr({ dnat: { addr: "10.0.0.1" } })],
    });
    const chain = table.chains.get("base");
    expect(chain === undefined ? 0 : translatingRules(table, chain, NEW).length).toBe(1);
  });
});

import { Refusal, tokenize } from "@turnout/host/testing/nft";

/** Numbers in [0, 1) that a seed decides. @source mulberry32, public domain */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Choose one. @throws {Error} when there is none. */
export function choose<T>(from: readonly T[], random: () => number): T {
  const found = from[Math.floor(random() * from.length)];
  if (found === undefined) throw new Error("nothing to choose from");
  return found;
}

/** A statement cut into its words; text no lexer takes stays whole. */
function wordsOf(statement: string): readonly string[] {
  try {
    return tokenize(statement).flatMap(({ kind, start, end }) => (kind === "end" ? [] : [statement.slice(start, end)]));
  } catch (error) {
    if (error instanceof Refusal) return [statement];
    throw error;
  }
}

const STRAY_WORDS =
  "{ } ; , : . @services @cluster-ips @nope drop accept return goto jump ip ip6 turnout nope 0 1 80 65536 4294967296 10.96.0.1 10.96.0.0/16 " +
  'fd00:96::1 tcp udp 6 dport daddr "x" "y*" comment timeout 50m add delete element rule chain mod offset refuse layout-4 ! == != - and map vmap';

/** Break a transaction in one place, as a hand that slips, or a backend with a fault, would. */
export function mutate(statements: readonly string[], others: readonly string[], random: () => number): readonly string[] {
  const at = Math.floor(random() * statements.length);
  const statement = statements[at] ?? "";
  const words = [...wordsOf(statement)];
  const spot = Math.floor(random() * words.length);
  const donor = wordsOf(choose(others, random));
  switch (Math.floor(random() * 9)) {
    case 0:
      return statements.toSpliced(at, 1);
    case 1:
      return statements.toSpliced(at, 0, statement);
    case 2:
      return statements.toSpliced(Math.floor(random() * statements.length), 0, choose(others, random));
    case 3:
      return statements.length < 2 ? statements : [...statements.slice(at), ...statements.slice(0, at)];
    case 4:
      return statements.with(at, words.toSpliced(spot, 1).join(" "));
    case 5:
      return statements.with(at, words.toSpliced(spot, 0, words[spot] ?? "").join(" "));
    case 6:
      return statements.with(at, words.with(spot, choose(STRAY_WORDS.split(" "), random)).join(" "));
    case 7:
      return statements.with(at, words.toSpliced(spot, 0, choose(STRAY_WORDS.split(" "), random)).join(" "));
    default:
      return statements.with(at, words.with(spot, choose(donor, random)).join(" "));
  }
}

const RULE_PARTS: readonly string[] = [
  "ip daddr 10.96.0.1",
  "ip saddr != 10.1.0.0/16",
  "ip daddr @cluster-ips",
  "ip daddr != @cluster-ips",
  "ip saddr . ip daddr @hairpin",
  "ip6 daddr fd00:96::1",
  "ip6 saddr fd00::/16",
  "tcp dport 80",
  "tcp dport { 80, 443 }",
  "tcp dport 1-1024",
  "udp dport != 53",
  "th dport 80",
  "meta l4proto tcp",
  "meta l4proto { tcp, udp }",
  "meta l4proto sctp",
  "ip protocol udp",
  "meta mark 0x4000",
  "meta mark and 0x4000 == 0x4000",
  "meta mark set 5",
  "meta mark set meta mark or 0x4000",
  "meta mark set meta mark xor 0x4000",
  "ct state new",
  "ct state established,related",
  "ct state invalid",
  "ct state != new",
  "ct status dnat",
  'iifname "veth*"',
  "iifname != eth0",
  'oifname "lo"',
  "fib daddr type local",
  "fib saddr type local",
  "counter",
  "numgen random mod 3 0",
  "numgen random mod 0 0",
  "numgen random mod 3 offset 4294967295 1",
  "ip ttl < 5",
  "ip saddr { 10.0.0.0/8, 192.168.0.1 }",
  "ip saddr { 10.0.0.0/8, 10.1.0.0/16 }",
  "ip saddr . tcp dport { 10.0.0.1 . 80 }",
  "update @affinity { ip saddr . numgen random mod 1 . numgen random mod 1 timeout 50m }",
  "update @small { tcp dport }",
  "ip daddr . meta l4proto . th dport vmap @services",
  "meta l4proto . th dport vmap @nodeports",
  "ip daddr vmap @services",
  "ip daddr @services",
  "tcp dport vmap { 80 : accept, 443 : goto refuse }",
  "tcp dport vmap { 80 : accept, 80 : drop }",
  'log prefix "hm "',
  "log",
  "ct mark set 7",
  "meta mark set ip saddr",
  "meta mark set numgen random mod 4",
  "tcp dport @cluster-ips",
  "udp sport 53",
  "tcp sport 53",
  "sctp dport 9",
];
const RULE_ENDS: readonly string[] = [
  "drop",
  "accept",
  "return",
  "continue",
  "goto refuse",
  "jump refuse",
  "goto dispatch",
  "goto nope",
  "jump nat-prerouting",
  "reject",
  "reject with tcp reset",
  "reject with icmp type host-unreachable",
  "reject with icmpv6 type no-route",
  "masquerade",
  "masquerade fully-random",
  "masquerade random,persistent",
  "dnat to 10.1.0.1",
  "dnat to 10.1.0.1:8080",
  "dnat ip to 10.1.0.1:8080",
  "dnat to fd00::1",
  "snat to 10.1.0.1",
  "redirect to :80",
  "redirect",
  "dnat ip to ip daddr . tcp dport . numgen random mod 2 map @endpoints-tcp",
  "masquerade to :1000-2000",
  "dnat ip to ip daddr . udp dport . numgen random mod 2 map @endpoints-udp",
  "dnat ip to ip daddr . th dport . numgen random mod 2 map @endpoints-tcp",
  "dnat ip to tcp dport . numgen random mod 2 map @nodeport-endpoints-tcp",
  'drop comment "x"',
  `accept comment "${"x".repeat(129)}"`,
  "",
  "numgen random mod 1 . numgen random mod 1 . numgen random mod 2 vmap @affinity-endpoints",
  "goto a",
  "jump b",
  "jump c",
  "goto from-e314ae20",
];
const ELEMENTS: readonly string[] = [
  "cluster-ips { 10.96.0.1 }",
  "cluster-ips { 10.96.0.99, 10.96.0.98 }",
  'cluster-ips { 10.96.0.99 comment "c" }',
  "cluster-ips { fd00:96::9 }",
  "cluster-ips { 10.96.0.0/24 }",
  "cluster-ips { 10.96.0.1-10.96.0.9 }",
  "cluster-ips { 10.96.0.1 timeout 50m }",
  "cluster-ips { 300.1.1.1 }",
  "services { 10.96.0.9 . tcp . 80 : drop }",
  "services { 10.96.0.9 . tcp . 80 : goto refuse }",
  "services { 10.96.0.9 . tcp . 80 : goto nope }",
  "services { 10.96.0.9 . tcp . 80 }",
  "services { 10.96.0.9 . tcp : drop }",
  "services { 10.96.0.9 . 6 . 80 : accept, 10.96.0.9 . udp . 80 : drop }",
  "services { 10.96.0.9 . tcp . 70000 : drop }",
  "services { 10.96.0.9 . tcp . 80 : goto nat-prerouting }",
  "services { 10.96.0.9 . tcp . 80 : goto a }",
  'services { 10.96.0.9 . tcp . 81 comment "a/b:c" : jump dispatch }',
  "services { 10.96.0.9 . tcp . 80 : 5 }",
  "nope { 1 }",
  "affinity { 10.0.0.1 . 1 . 2 timeout 50m }",
  "endpoints-tcp { 10.96.0.9 . 80 . 0 : 10.1.0.1 . 8080 }",
  "endpoints-tcp { 10.96.0.9 . 80 . 0 : 10.1.0.2 . 8080 }",
  "endpoints-tcp { 10.96.0.9 . 80 . 0 }",
  "endpoints-tcp { 10.96.0.9 . 80 . 4294967295 : 10.1.0.1 . 1 }",
  "endpoints-tcp { 10.96.0.9 . 80 . 4294967296 : 10.1.0.1 . 1 }",
  "endpoints-tcp { 10.96.0.9 . 80 . 3 : drop }",
  "endpoints-tcp { 10.96.0.9 . 80 . 0 : 10.1.0.1 . 0, 10.96.0.9 . 80 . 0 : 10.1.0.1 . 1 }",
  "hairpin { 10.1.0.1 . 10.1.0.1 }",
  "hairpin { 10.1.0.1 }",
  "nodeports { tcp . 30000 : goto b }",
  "nodeports { tcp . 30000 : drop, udp . 30000 : goto refuse }",
  "affinity-endpoints { 1 . 2 . 3 : goto c }",
  "affinity-endpoints { 1 . 2 . 3 : drop }",
  "is { 10.0.0.0/8 }",
  "is { 10.1.0.0/16 }",
  "is { 10.0.0.1-10.0.0.9 }",
  "is { 10.0.0.5 }",
  "is { 192.168.0.1 }",
  "is { 9.0.0.0-10.0.0.0 }",
  "im { 1-9 : drop }",
  "im { 5 : accept }",
  "small { 1, 2, 3 }",
  "small { 4 }",
  "small { 1 }",
  "timed { 10.0.0.1 }",
  "timed { 10.0.0.2 timeout 30m }",
  "marks { 5 : 0x10 }",
  "marks { 5 : 17 }",
];
const CHANGES: readonly string[] = [
  "add table ip turnout",
  "create table ip turnout",
  "add table ip other",
  "delete table ip other",
  "delete table ip nope",
  "flush chain ip turnout dispatch",
  "flush chain ip turnout nope",
  "add chain ip turnout a",
  "add chain ip turnout b",
  "add chain ip turnout c",
  "create chain ip turnout a",
  "delete chain ip turnout a",
  "delete chain ip turnout b",
  "delete chain ip turnout c",
  "delete chain ip turnout refuse",
  "delete chain ip turnout nope",
  "flush chain ip turnout a",
  "flush chain ip turnout b",
  "flush chain ip turnout c",
  "add chain ip turnout base { type filter hook input priority 0; }",
  "add chain ip turnout base { type filter hook input priority 0; policy drop; }",
  "delete chain ip turnout base",
  "add chain ip turnout base { type nat hook input priority 100; }",
  "add chain ip turnout bad { type nat hook forward priority 0; }",
  "add chain ip turnout bad { type nat hook prerouting priority -300; }",
  "add chain ip turnout bad { type nothing hook input priority 0; }",
  "add chain ip turnout bad { type filter hook nowhere priority 0; }",
  "add chain ip turnout nat-prerouting { type nat hook prerouting priority -100; }",
  "add chain ip turnout nat-prerouting { type nat hook prerouting priority 0; }",
  "add chain ip turnout nat-prerouting",
  "add chain ip turnout a { type filter hook input priority 0; }",
  "add chain ip turnout drop",
  `add chain ip turnout ${"n".repeat(255)}`,
  `delete chain ip turnout ${"n".repeat(255)}`,
  `add chain ip turnout ${"n".repeat(256)}`,
  "add set ip turnout is { type ipv4_addr; flags interval; }",
  "add map ip turnout im { type inet_service : verdict; flags interval; }",
  "add set ip turnout small { type inet_service; size 3; }",
  "add set ip turnout timed { type ipv4_addr; timeout 1h; }",
  "add map ip turnout marks { type inet_service : mark; }",
  "add set ip turnout is { type ipv4_addr; }",
  "add set ip turnout bad { type nothing; }",
  "add map ip turnout bad { type ipv4_addr; }",
  "add set ip turnout bad { flags interval; }",
  "add set ip turnout cluster-ips { type ipv4_addr; }",
  "add set ip turnout cluster-ips { type ipv6_addr; }",
  "create set ip turnout cluster-ips { type ipv4_addr; }",
  "delete set ip turnout is",
  "delete map ip turnout im",
  "delete set ip turnout small",
  "delete set ip turnout timed",
  "delete map ip turnout marks",
  "delete set ip turnout cluster-ips",
  "delete map ip turnout services",
  "delete set ip turnout nope",
  "flush set ip turnout cluster-ips",
  "flush map ip turnout services",
  "flush set ip turnout is",
  "flush set ip turnout nope",
  "add rule ip turnout nope drop",
  "flush table ip turnout",
  "delete set ip turnout nodeport-ips",
  "add set ip turnout nodeport-ips { type ipv4_addr; }",
  "add set ip turnout is { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }",
];

// No `update` of a set without a size: the kernel gives it one even when it refuses the rule.
/** Make up a statement that a foreign hand might write about the IPv4 table; about half of them are refused somewhere. */
export function randomStatement(random: () => number): string {
  const kind = random();
  if (kind < 0.3) return choose(CHANGES, random);
  if (kind < 0.6)
    return `${choose(["add", "add", "add", "create", "delete", "delete"], random)} element ip turnout ${choose(ELEMENTS, random)}`;
  const parts = Array.from({ length: Math.floor(random() * 3) }, () => choose(RULE_PARTS, random));
  const chain = choose(
    ["a", "b", "c", "a", "b", "c", "refuse", "dispatch", "nat-prerouting", "nat-postrouting", "filter-forward", "base"],
    random,
  );
  return `${choose(["add", "add", "insert"], random)} rule ip turnout ${chain} ${[...parts, choose(RULE_ENDS, random)].join(" ")}`.trimEnd();
}

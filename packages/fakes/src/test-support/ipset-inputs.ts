import { pickOne } from "@turnout/core/testing";

function restore(...lines: readonly string[]): readonly [string, string] {
  return ["restore", `${lines.join("\n")}\n`];
}

/** Command lines, each with an input: what somebody might do, right or wrong. One after the other. */
export const ONE_BY_ONE: readonly (readonly [args: string, input: string])[] = [
  ["version", ""],
  ["save", ""],
  ["save NOPE", ""],
  restore("create A hash:ip,port", "add A 10.0.0.1,tcp:80", "add A 10.0.0.1,tcp:80", "add A 10.0.0.2,tcp:80"),
  restore("add A 10.0.0.5,tcp:80", "del A 9.9.9.9,tcp:80", "add A 10.0.0.6,tcp:80"),
  ...["add NOPE 10.0.0.5,tcp:80", "del NOPE 10.0.0.5,tcp:80", "destroy NOPE", "flush NOPE", "save NOPE", "swap NOPE A", "swap A NOPE"].map(
    (line) => restore(line),
  ),
  ...["", " -exist", " maxelem 99 -exist", " family inet6 -exist", " hashsize 2048 -exist", " counters -exist"].map((words) =>
    restore(`create A hash:ip,port${words}`),
  ),
  restore("create A hash:ip -exist"),
  restore("create BAD hash:nope"),
  restore("create N1234567890123456789012345678901 hash:ip"),
  restore("create N123456789012345678901234567890 hash:ip"),
  ...[
    "fd00::1,tcp:80",
    "10.0.0.1",
    "10.0.0.1,tcp:70000",
    "10.0.0.1,tcp:0",
    "10.0.0.1,foo:1",
    "10.0.0.256,tcp:1",
    "10.0.0.1,80",
    "10.0.0.1,17:9",
  ].map((entry) => restore(`add A ${entry}`)),
  restore("add A 10.0.0.1,tcp:80,10.0.0.1"),
  restore("add A 3.3.3.1,tcp:80", "add A 10.0.0.1"),
  restore("add A 3.3.3.1,tcp:80", "add A 10.0.0.1,tcp:70000"),
  restore("add A 3.3.3.1,tcp:80", "frob A"),
  restore("add A 3.3.3.1,tcp:80", "create OTHER hash:ip", "add A 10.0.0.1"),
  // What was collected is refused later than what can't be read.
  restore("add A 10.0.0.1,tcp:80", "add A 10.0.0.1"),
  restore("add A"),
  restore("add A 10.0.0.1,tcp:81 -exist", "add A 10.0.0.1,tcp:81 -exist", "-exist add A 10.0.0.1,tcp:81"),
  restore("del A 10.9.0.1,tcp:81 -exist"),
  restore("", "# comment", "", "add A 10.0.0.77,tcp:81", "", "  add   A   10.0.0.78,tcp:81  "),
  restore("create S hash:ip maxelem 2", "add S 1.1.1.1", "add S 1.1.1.2", "add S 1.1.1.3"),
  ["add S 1.1.1.9", ""],
  ["add S 1.1.1.1", ""],
  ["-exist add S 1.1.1.1", ""],
  ["del S 1.1.1.4", ""],
  ["create S hash:ip", ""],
  restore("swap A S"),
  restore("create A2 hash:ip,port maxelem 7", "add A2 1.1.1.1,tcp:1", "swap A A2"),
  restore("create A6 hash:ip,port family inet6", "add A6 fd00:0::1,tcp:80", "add A6 10.0.0.1,tcp:80"),
  restore("swap A A6"),
  restore("create P bitmap:port range 0-65535", "add P 1", "add P 65536"),
  restore("add P 10.0.0.1"),
  restore("add P 1,2"),
  ...[
    "add P 1",
    "add P 0",
    "add P tcp:1",
    "del P 9",
    "del P 1",
    "create P bitmap:port range 0-65535 -exist",
    "create P bitmap:port -exist",
  ].map((line) => restore(line)),
  restore("create C hash:ip,port,net", "add C 10.0.0.1,tcp:80,10.0.0.0/0"),
  restore("add C 10.0.0.1,tcp:80,10.0.0.9/32", "add C 10.0.0.1,tcp:80,10.0.0.9"),
  ...[
    "10.0.0.1,tcp:80,10.0.0.9/33",
    "10.0.0.1,tcp:80,10.9.8.7/24",
    "10.0.0.1,tcp:80",
    "10.0.0.1,tcp:80,1.1.1.1,1.1.1.1",
    "10.0.0.1,tcp:80,0.0.0.0/1",
  ].map((entry) => restore(`add C ${entry}`)),
  restore("create C6 hash:ip,port,net family inet6", "add C6 fd00::1,sctp:80,::/0"),
  ...["fd00::1,sctp:80,fd00:1:2:3::/64", "fd00::1,sctp:80,fd00::129/127", "fd00::1,sctp:80,8000::/1", "fd00::1,sctp:80,fd00::/129"].map(
    (entry) => restore(`add C6 ${entry}`),
  ),
  restore("create B hash:ip,port,ip", "add B 10.0.0.1,tcp:80,10.0.0.0/24"),
  restore("add B 10.0.0.1,udp:80,10.0.0.1", "add B 10.0.0.1,udp:80,0.0.0.0"),
  ...[
    "A 0.0.0.0,tcp:1",
    "A6 ::,tcp:1",
    "B 0.0.0.0,tcp:1,1.1.1.1",
    "C 0.0.0.0,tcp:1,1.1.1.1",
    "C6 ::,tcp:1,fd00::1",
    "C 1.1.1.1,tcp:1,0.0.0.0",
  ].map((words) => restore(`add ${words}`)),
  restore("create E hash:ip", "add E 0.0.0.0"),
  restore("create E6 hash:ip family inet6", "add E6 fd00::1/64"),
  restore("add E6 ::"),
  restore("add E6 fd00::1,tcp:80"),
  restore("create Z hash:ip nonsense"),
  restore("create Z hash:ip family"),
  restore("create Z1 hash:ip hashsize 1", "create Z2 hash:ip hashsize 100", "save Z2"),
  restore("create K hash:ip,port counters comment", 'add K 1.2.3.4,tcp:1 comment "x y"', "save K"),
  ["list -name", ""],
  restore("save A", "save NOPE", "save A"),
  restore("flush A", "destroy A2"),
  ["destroy", ""],
];

const SETS: readonly (readonly [name: string, create: string])[] = [
  ["A", "hash:ip,port"],
  ["A6", "hash:ip,port family inet6"],
  ["B", "hash:ip,port,ip"],
  ["C", "hash:ip,port,net maxelem 3"],
  ["P", "bitmap:port range 0-65535"],
  ["T", "hash:ip,port"],
];
const ENTRIES = [
  ..."10.0.0.1,tcp:80 10.0.0.2,udp:80 fd00::1,tcp:80 10.0.0.1,tcp:80,10.0.0.1 10.0.0.1,tcp:80,10.0.0.0/8 10.0.0.1,tcp:80,0.0.0.0/0".split(
    " ",
  ),
  ..."10.0.0.2,tcp:80,10.0.0.2 10.0.0.3,tcp:80,10.1.0.0/16 30080 1 nope 10.0.0.1 0.0.0.0,tcp:80".split(" "),
];

/** An input of a few lines for a few sets, most of it right. */
export function randomInput(random: () => number): string {
  return Array.from({ length: 1 + Math.floor(random() * 8) }, () => `${randomLine(random)}\n`).join("");
}

function randomLine(random: () => number): string {
  const [name, create] = pickOne(SETS, random);
  const roll = random();
  if (roll < 0.25) return `create ${name} ${random() < 0.9 ? create : pickOne(SETS, random)[1]}`;
  if (roll < 0.32) return `destroy ${name}`;
  if (roll < 0.36) return `flush ${name}`;
  if (roll < 0.42) return `swap ${name} ${pickOne(SETS, random)[0]}`;
  const fitting = ENTRIES.filter((entry) => entry.split(",").length === create.split(" ")[0]?.split(",").length);
  return `${random() < 0.7 ? "add" : "del"} ${name} ${random() < 0.85 ? pickOne(fitting, random) : pickOne(ENTRIES, random)}`;
}

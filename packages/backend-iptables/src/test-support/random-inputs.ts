import { pickOne } from "@turnout/core/testing";

const STRAY_WORDS =
  "! -A -D -I -X -F -N -j -g -m -p -s -d -i -o KUBE-SERVICES KUBE-A KUBE-B INPUT OUTPUT nope tcp udp sctp all 6 1 2 0 99 65536 10.0.0.1 10.1.2.3/16 " +
  "eth0 lo+ comment conntrack recent mark --dport --comment --ctstate NEW NEW,INVALID --mark 0x4000/0x4000 --name --set --rcheck --seconds 60 --reap " +
  "ACCEPT DROP RETURN REJECT MASQUERADE DNAT MARK --to-destination 10.1.1.1:80 --or-mark 0x1 --random-fully --reject-with tcp-reset COMMIT";

/** Break an input in one place, as a hand that slips, or a backend with a fault, would. */
export function mutate(input: string, others: readonly string[], random: () => number): string {
  const lines = input.trimEnd().split("\n");
  const at = Math.floor(random() * lines.length);
  const line = lines[at] ?? "";
  // Words of a comment stay together.
  const words: readonly string[] = line.match(/"[^"]*"|\S+/g) ?? [];
  const spot = Math.floor(random() * words.length);
  const word = pickOne(STRAY_WORDS.split(" "), random);
  const changed = ((): readonly string[] => {
    switch (Math.floor(random() * 9)) {
      case 0:
        return lines.toSpliced(at, 1);
      case 1:
        return lines.toSpliced(at, 0, line);
      case 2:
        return lines.toSpliced(1 + Math.floor(random() * (lines.length - 1)), 0, pickOne(others, random));
      case 3:
        return lines.length < 4 ? lines : lines.with(at, lines[(at + 1) % lines.length] ?? "").with((at + 1) % lines.length, line);
      case 4:
        return lines.with(at, words.toSpliced(spot, 1).join(" "));
      case 5:
        return lines.with(at, words.toSpliced(spot, 0, words[spot] ?? "").join(" "));
      case 6:
        return lines.with(at, words.with(Math.max(spot, 0), word).join(" "));
      case 7:
        return lines.with(at, words.toSpliced(spot, 0, word).join(" "));
      default:
        return lines.with(at, pickOne(others, random));
    }
  })();
  return `${changed.join("\n")}\n`;
}

const CHAINS: readonly string[] = ["KUBE-A", "KUBE-B", "KUBE-C", "KUBE-D", "NOPE", "INPUT", "OUTPUT", "PREROUTING", "POSTROUTING"];

const MATCHES: readonly string[] = [
  "-s 10.1.0.0/16",
  "! -d 10.96.0.1",
  "-s 10.1.2.3,10.1.2.4",
  "-i eth0",
  "! -o lo+",
  "-p tcp --dport 80",
  "-p udp -m udp --dport 53:60 ! --sport 9",
  "-p sctp -m sctp --dport 80",
  "-m tcp --dport 80",
  "! -p tcp",
  '-m comment --comment "a b"',
  "-m comment --comment a:b",
  "-m conntrack --ctstate ESTABLISHED,RELATED",
  "-m conntrack ! --ctstate NEW,DNAT",
  "-m addrtype --dst-type LOCAL",
  "-m addrtype --src-type LOCAL ! --dst-type UNICAST",
  "-m mark --mark 0x4000/0x4000",
  "-m mark ! --mark 5",
  "-m statistic --mode random --probability 0.3333333333",
  "-m recent --name a --rcheck --seconds 10 --reap --rsource",
  "-m recent --name b --set",
  "-m nfacct --nfacct-name nope",
];

const TARGETS: readonly string[] = [
  "-j ACCEPT",
  "-j DROP",
  "-j RETURN",
  "-j REJECT",
  "-p tcp -j REJECT --reject-with tcp-reset",
  "-j MARK --or-mark 0x4000",
  "-j MARK --xor-mark 0x4000",
  "-j MARK --set-mark 1/0xff",
  "-j MASQUERADE",
  "-j MASQUERADE --random-fully",
  "-p tcp -j DNAT --to-destination 10.1.1.1:80",
  "-j DNAT --to-destination 10.1.1.1:80",
  "-j SNAT --to-source 10.1.1.1",
];

/** An input of a few lines: what somebody might do, right or wrong, to chains `KUBE-A` to `KUBE-D`. */
export function randomInput(random: () => number): string {
  const table = pickOne(["filter", "nat", "nat", "mangle"], random);
  const lines = Array.from({ length: 1 + Math.floor(random() * 4) }, () => randomLine(random));
  const end = random() < 0.98 ? "COMMIT\n" : "";
  // Where something comes before a -R, nft's tool 1.8.9 may crash.
  const replacing = lines.filter((line) => line.startsWith("-R"));
  return `*${table}\n${(replacing.length > 0 ? replacing.slice(0, 1) : lines).join("\n")}\n${end}`;
}

function randomLine(random: () => number): string {
  const chain = pickOne(random() < 0.6 ? CHAINS.slice(0, 4) : CHAINS, random);
  const number = random() < 0.3 ? ` ${1 + Math.floor(random() * 3)}` : "";
  const roll = random();
  if (roll < 0.3) return `:${chain} - [0:0]`;
  if (roll < 0.36) return `-F ${chain}`;
  // What nft's tool says of built-in ones here depends on what it happens to have read before.
  if (roll < 0.46) return `-X ${pickOne(CHAINS.slice(0, 5), random)}`;
  if (roll < 0.5) return `-N ${pickOne(CHAINS.slice(0, 5), random)}`;
  if (roll < 0.53) return `-D ${chain} ${1 + Math.floor(random() * 3)}`;
  if (roll < 0.54) return `-P ${chain} ${pickOne(["ACCEPT", "DROP", "nope"], random)}`;
  if (roll < 0.58) return `-R ${chain}${number} ${randomRule(random)}`;
  if (roll < 0.65) return `-D ${chain} ${randomRule(random)}`;
  return roll < 0.85 ? `-A ${chain} ${randomRule(random)}` : `-I ${chain}${number} ${randomRule(random)}`;
}

function randomRule(random: () => number): string {
  const matches = Array.from({ length: Math.floor(random() * 2.5) }, () => pickOne(MATCHES, random));
  const target = random() < 0.4 ? `-${random() < 0.9 ? "j" : "g"} ${pickOne(CHAINS, random)}` : pickOne(TARGETS, random);
  return [...matches, ...(random() < 0.9 ? [target] : [])].join(" ");
}

import { pickOne } from "@turnout/core/testing";
import { RULE_LINES } from "./rule-lines.ts";

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

/** An input of a few lines: what somebody might do, right or wrong, to chains `KUBE-A` to `KUBE-D`. */
export function randomInput(random: () => number): string {
  const table = pickOne(["filter", "nat", "nat", "mangle"], random);
  const lines = Array.from({ length: 1 + Math.floor(random() * 4) }, () => randomLine(table, random));
  const end = random() < 0.98 ? "COMMIT\n" : "";
  // Where something comes before a -R, nft's tool 1.8.9 may crash.
  const replacing = lines.filter((line) => line.startsWith("-R"));
  return `*${table}\n${(replacing.length > 0 ? replacing.slice(0, 1) : lines).join("\n")}\n${end}`;
}

function randomLine(table: string, random: () => number): string {
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
  if (roll < 0.58) return `-R ${chain}${number} ${randomRule(table, random)}`;
  if (roll < 0.65) return `-D ${chain} ${randomRule(table, random)}`;
  return roll < 0.85 ? `-A ${chain} ${randomRule(table, random)}` : `-I ${chain}${number} ${randomRule(table, random)}`;
}

/** A rule as it may be written, right or wrong, and often with a jump. */
function randomRule(table: string, random: () => number): string {
  const ways = RULE_LINES.IPv4[table === "nat" && random() < 0.5 ? "nat" : "filter"] ?? [];
  const jump = ` -${random() < 0.9 ? "j" : "g"} ${pickOne(CHAINS, random)}`;
  return `${pickOne(ways, random)}${random() < 0.4 ? jump : ""}`;
}

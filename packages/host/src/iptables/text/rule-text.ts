import { ProxyError } from "@turnout/core";
import type { IPFamily, LocalDetector } from "@turnout/core";

/** The parts of a rule; addresses are CIDRs. */
export interface RuleParts {
  readonly destination?: string;
  /** Part about the packet's sender or way in, with what inverts it: see {@link sourcePart}. */
  readonly source?: SourcePart | undefined;
  readonly protocol?: string;
  /** In the order in which they are written. */
  readonly matches?: readonly string[];
  readonly target?: string;
}

/** A match on the source address or the interface a packet came in by. */
export interface SourcePart {
  readonly by: "source" | "interface";
  /** e.g. `-s 10.0.0.0/8`, `! -i veth+`. */
  readonly text: string;
}

/** What is different in the two families. */
export interface Words {
  readonly hostBits: number;
  readonly loopback: string;
  readonly refusal: string;
  readonly mask: string;
}

/** The words of each family. */
export const WORDS: Readonly<Record<IPFamily, Words>> = {
  IPv4: { hostBits: 32, loopback: "127.0.0.0/8", refusal: "icmp-port-unreachable", mask: "255.255.255.255" },
  IPv6: { hostBits: 128, loopback: "::1/128", refusal: "icmp6-port-unreachable", mask: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
};

/** Write a rule as `iptables-save` prints it: source, destination, interface, protocol, then the matches and the target. */
export function ruleText({ destination, source, protocol, matches = [], target }: RuleParts): string {
  const parts: string[] = [];
  if (source?.by === "source") parts.push(source.text);
  if (destination !== undefined) parts.push(destination);
  if (source?.by === "interface") parts.push(source.text);
  if (protocol !== undefined) parts.push(`-p ${protocol}`);
  parts.push(...matches);
  if (target !== undefined) parts.push(`-j ${target}`);
  return parts.join(" ");
}

/** Match on one destination address. */
export function toAddress(ip: string, family: IPFamily): string {
  return `-d ${ip}/${WORDS[family].hostBits}`;
}

/** Match on a source range; undefined for one that holds every address, which `iptables-save` leaves out. */
export function fromRange(cidr: string): SourcePart | undefined {
  return cidr.endsWith("/0") ? undefined : { by: "source", text: `-s ${cidr}` };
}

/** A comment; only validated names and constants go in, so there is nothing to escape. */
export function comment(text: string): string {
  return `-m comment --comment "${text}"`;
}

/** Match on the destination port. */
export function toPort(protocol: string, port: number): string {
  return `-m ${protocol} --dport ${port}`;
}

/**
 * Match on one endpoint of `remaining`, as the kernel keeps the probability: in steps of 2⁻³¹.
 * @source libxt_statistic: `lround(0x80000000 * probability)`, printed with `%.11f`
 */
export function oneOf(remaining: number): string {
  const given = Number((1 / remaining).toFixed(10));
  return `-m statistic --mode random --probability ${(Math.round(given * 2 ** 31) / 2 ** 31).toFixed(11)}`;
}

/**
 * Match on packets that come from a pod, or (`isLocal` false) on those that don't.
 *
 * Edges: undefined when every packet fits; "none" when none can, so that the rule is left out.
 */
export function sourcePart(detector: LocalDetector, isLocal: boolean): SourcePart | undefined | "none" {
  const not = isLocal ? "" : "! ";
  switch (detector.by) {
    case "cidr": {
      const cidr = detector.cidrs[0];
      if (cidr === undefined) return isLocal ? "none" : undefined;
      if (cidr.endsWith("/0")) return isLocal ? undefined : "none";
      return { by: "source", text: `${not}-s ${cidr}` };
    }
    case "interface":
      return { by: "interface", text: `${not}-i ${checkedInterface(detector.name)}` };
    case "interfacePrefix":
      return { by: "interface", text: `${not}-i ${checkedInterface(detector.prefix, LINK_MAX - 1)}+` };
  }
}

/** The mark that asks for masquerade, as value and mask: `0x4000/0x4000`. */
export function markBit(bit: number): string {
  const hex = `0x${(2 ** bit).toString(16)}`;
  return `${hex}/${hex}`;
}

/** Characters of an interface's name, the `+` behind a prefix among them. */
const LINK_MAX = 15;

function checkedInterface(name: string, lengthMax: number = LINK_MAX): string {
  if (!/^[A-Za-z0-9_.:@-]+$/.test(name) || name.length > lengthMax) {
    throw new ProxyError("invalid_object", `bad interface name ${JSON.stringify(name)}`, {
      hint: `use up to ${lengthMax} letters, digits or _ . : @ -`,
    });
  }
  return name;
}

import { parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { MatchBody, TargetBody } from "./extension.ts";
import { usage } from "./refusal.ts";
import type { Walk } from "./walk.ts";

/** A value a rule compares with, and whether it must not be it. */
export interface Wanted<T> {
  readonly value: T;
  readonly isInverted: boolean;
}

/** A range of addresses. */
export interface Network {
  /** Canonical, with its prefix length. */
  readonly text: string;
  readonly family: IPFamily;
  readonly value: bigint;
  readonly prefixLength: number;
}

/** The parts of a rule, as read from the command line. */
export interface RuleParts {
  readonly source?: Wanted<Network> | undefined;
  readonly destination?: Wanted<Network> | undefined;
  readonly inputLink?: Wanted<string> | undefined;
  readonly outputLink?: Wanted<string> | undefined;
  /** `tcp`, …, or a number. */
  readonly protocol?: Wanted<string> | undefined;
  readonly matches: readonly MatchBody[];
  readonly target?: TargetBody | undefined;
  /** The chain it jumps or goes to. */
  readonly chain?: string | undefined;
  readonly isGoto?: boolean;
}

/** A rule that was understood. */
export interface Rule extends RuleParts {
  /** As `iptables-save` prints it, without `-A CHAIN`: two rules are the same when their texts are. */
  readonly text: string;
}

/** Put a rule together. */
export function ruleOf(parts: RuleParts): Rule {
  const { source, destination, inputLink, outputLink, protocol, matches, target, chain, isGoto = false } = parts;
  const words = [
    addressText("-s", source),
    addressText("-d", destination),
    wantedText("-i", inputLink),
    wantedText("-o", outputLink),
    wantedText("-p", protocol),
    ...matches.map(({ text }) => text),
    target?.text ?? "",
    chain === undefined ? "" : `${isGoto ? "-g" : "-j"} ${chain}`,
  ];
  return { ...parts, text: words.filter((word) => word !== "").join(" ") };
}

function wantedText(option: string, wanted: Wanted<string> | undefined): string {
  if (wanted === undefined || wanted.value === "+") return "";
  return `${wanted.isInverted ? "! " : ""}${option} ${wanted.value}`;
}

function addressText(option: string, wanted: Wanted<Network> | undefined): string {
  if (wanted === undefined || (wanted.value.prefixLength === 0 && !wanted.isInverted)) return "";
  return `${wanted.isInverted ? "! " : ""}${option} ${wanted.value.text}`;
}

/** Tell whether a packet meets all that a rule asks. */
export function isMatch(rule: Rule, walk: Walk): boolean {
  return (
    isIn(rule.source, walk.sourceValue) &&
    isIn(rule.destination, walk.destinationValue) &&
    isLink(rule.inputLink, walk.inputLink) &&
    isLink(rule.outputLink, walk.outputLink) &&
    (rule.protocol === undefined || (rule.protocol.value === walk.protocol) !== rule.protocol.isInverted) &&
    // In order, since some of them leave something behind.
    rule.matches.every((match) => match.test(walk))
  );
}

function isIn(wanted: Wanted<Network> | undefined, address: bigint): boolean {
  return wanted === undefined || isInNetwork(wanted.value, address) !== wanted.isInverted;
}

/** Tell whether an address of the network's family is in it. */
export function isInNetwork({ family, value, prefixLength }: Network, address: bigint): boolean {
  const shift = BigInt((family === "IPv4" ? 32 : 128) - prefixLength);
  return address >> shift === value >> shift;
}

function isLink(wanted: Wanted<string> | undefined, link: string): boolean {
  if (wanted === undefined) return true;
  const { value, isInverted } = wanted;
  const isSame = value.endsWith("+") ? link.startsWith(value.slice(0, -1)) : link === value;
  return isSame !== isInverted;
}

/**
 * Read `address`, `address/length` or `address/mask`; bits beyond the mask are cleared.
 *
 * Edges: the shortened and octal forms of IPv4, and IPv4 in IPv6's mapped form, are refused here though the real tool takes them.
 * @throws {Refusal}.
 */
export function readNetwork(text: string, family: IPFamily): Network {
  const slash = text.indexOf("/");
  const address = parseIP(slash < 0 ? text : text.slice(0, slash));
  const bits = family === "IPv4" ? 32 : 128;
  const maskText = slash < 0 ? String(bits) : text.slice(slash + 1);
  const prefixLength = /^\d{1,3}$/.test(maskText) ? Number(maskText) : lengthOfMask(maskText, family);
  if (prefixLength === undefined || prefixLength > bits) throw usage(`invalid mask \`${maskText}' specified`);
  if (address?.family !== family) throw usage(`host/network \`${slash < 0 ? text : text.slice(0, slash)}' not found`);
  const shift = BigInt(bits - prefixLength);
  const value = (address.value >> shift) << shift;
  return { text: `${textOf(value, family)}/${prefixLength}`, family, value, prefixLength };
}

function lengthOfMask(text: string, family: IPFamily): number | undefined {
  const mask = parseIP(text);
  if (mask?.family !== family) return undefined;
  const bits = mask.value.toString(2).padStart(family === "IPv4" ? 32 : 128, "0");
  return /^1*0*$/.test(bits) ? bits.lastIndexOf("1") + 1 : undefined;
}

function textOf(value: bigint, family: IPFamily): string {
  const digits = (count: number, width: bigint): readonly bigint[] =>
    Array.from({ length: count }, (_, index) => (value >> (width * BigInt(count - 1 - index))) & ((1n << width) - 1n));
  if (family === "IPv4") return digits(4, 8n).join(".");
  const groups = digits(8, 16n).map((group) => group.toString(16));
  return parseIP(groups.join(":"))?.text ?? groups.join(":");
}

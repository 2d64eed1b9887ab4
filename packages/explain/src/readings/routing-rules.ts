import { ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import type { RouteQuestion } from "./route.ts";
import { isAddressIn } from "@turnout/host/rules";

/** A rule by which the kernel chooses among tables of routes. */
export interface RoutingRule {
  /** Lower ones are asked first. */
  readonly priority: number;
  /** As `ip rule` writes it: `from 10.1.0.7 prohibit`. */
  readonly text: string;
  /** It ends the packet's way by itself, or sends it to a table. */
  readonly does: "refuse" | "look up";
  /** The packet's mark decides, among others. */
  readonly isByMark: boolean;
  readonly fits: (question: RouteQuestion) => boolean;
}

const REFUSING: readonly unknown[] = ["prohibit", "blackhole", "unreachable"];
/** What is understood here; a rule with anything else in it fits nobody. */
const KNOWN: readonly string[] = ["priority", "not", "src", "srclen", "dst", "dstlen", "iif", "fwmark", "fwmask", "table", "action"];

/** Read the routing rules of a family, in their order. @throws {ProxyError} `tool_failed` for what can't be read. */
export async function readRoutingRules(exec: Exec, family: IPFamily, signal: AbortSignal): Promise<readonly RoutingRule[]> {
  const { code, stdout } = await exec.run("ip", ["-j", family === "IPv4" ? "-4" : "-6", "rule", "show"], { signal });
  return code === 0 ? routingRulesIn(stdout) : [];
}

/** Read what `ip -j rule show` printed. Pure. @throws {ProxyError} `tool_failed` for what can't be read. */
export function routingRulesIn(text: string): readonly RoutingRule[] {
  try {
    return (JSON.parse(text === "" ? "[]" : text) as readonly Readonly<Record<string, unknown>>[]).map(readRule);
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "what ip told of its rules can't be read", { object: text.slice(0, 200) });
  }
}

function readRule(rule: Readonly<Record<string, unknown>>): RoutingRule {
  const range = (side: "src" | "dst"): string | undefined => {
    const address = rule[side];
    if (typeof address !== "string" || address === "all") return undefined;
    return rule[`${side}len`] === undefined ? address : `${address}/${String(rule[`${side}len`])}`;
  };
  const [from, to, device] = [range("src"), range("dst"), rule["iif"]];
  const [markText, maskText] = [rule["fwmark"], rule["fwmask"]].map((value) => (typeof value === "string" ? value : undefined));
  const mark = markText === undefined ? undefined : Number(markText);
  const mask = maskText === undefined ? 0xff_ff_ff_ff : Number(maskText);
  const isNot = rule["not"] !== undefined;
  const isKnown = Object.keys(rule).every((field) => KNOWN.includes(field));
  const matches = (question: RouteQuestion): boolean =>
    (from === undefined || isAddressIn(question.from, from) === true) &&
    (to === undefined || isAddressIn(question.to, to) === true) &&
    // What the host itself sends comes from lo.
    (typeof device !== "string" || device === (question.by ?? "lo")) &&
    (mark === undefined || (((question.mark ?? 0) ^ mark) & mask) === 0);
  const isRefusing = REFUSING.includes(rule["action"]);
  const words = [
    ...(isNot ? ["not"] : []),
    `from ${from ?? "all"}`,
    ...(to === undefined ? [] : [`to ${to}`]),
    ...(typeof device === "string" ? [`iif ${device}`] : []),
    ...(mark === undefined ? [] : [`fwmark ${markText}${maskText === undefined ? "" : `/${maskText}`}`]),
    isRefusing ? String(rule["action"]) : `lookup ${String(rule["table"])}`,
  ];
  return {
    priority: Number(rule["priority"]),
    text: words.join(" "),
    does: isRefusing ? "refuse" : "look up",
    isByMark: mark !== undefined,
    fits: (question) => isKnown && (isRefusing || rule["table"] !== undefined) && matches(question) !== isNot,
  };
}

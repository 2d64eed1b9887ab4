import type { ExecResult } from "@turnout/core";
import { complainedLine, iptablesError } from "@turnout/host/iptables";

/** Exit codes of the tools: of what a line asks for (no such chain, no such rule), of its words, of a table there isn't, of what the kernel refused. */
export const CODES = { command: 1, usage: 2, table: 3, kernel: 4 } as const;

/** What iptables or the kernel has against an input. Never leaves the fake: it is printed, in words that mean the same as the tool's. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly kind: keyof typeof CODES;

  constructor(kind: keyof typeof CODES, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What the tool says of the error numbers that come up. */
export const WORDS = {
  noChain: "No chain/target/match by that name",
  noRule: "Bad rule (does a matching rule exist in that chain?)",
  chainExists: "Chain already exists",
  badBuiltin: "Bad built-in chain name",
  badPolicy: "Bad policy name",
  notEmpty: "Directory not empty",
  tooManyLinks: "Too many links",
  loop: "Too many levels of symbolic links",
  invalid: "Invalid argument",
  busy: "Device or resource busy",
  missing: "No such file or directory",
} as const;

/** Refuse something on the command line. */
export function usage(message: string): Refusal {
  return new Refusal("usage", message);
}

/** All that Turnout reads of what a tool left: the code, the line, and what it means; of wrong words only where they are. */
export function heard({ code, stderr }: Pick<ExecResult, "code" | "stderr">): string {
  if (code === 0) return "0";
  return [code, complainedLine(stderr), ...(code === CODES.usage ? [] : [iptablesError(stderr, "").code])].join(" ");
}

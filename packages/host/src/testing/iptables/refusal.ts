/**
 * How a complaint is printed and which exit code goes with it: `usage` and `argument` are of the command line, `command` of what a line asks
 * for (no such chain, no such rule), `kernel` of the kernel when a table is handed over, `plain` is printed as it stands.
 */
export type RefusalKind = "usage" | "argument" | "command" | "kernel" | "plain";

/** What iptables or the kernel has against an input. Never leaves the fake: it is printed, as the tool prints it. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
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
  memory: "Cannot allocate memory",
} as const;

/** Refuse something on the command line; exit code 2. */
export function usage(message: string): Refusal {
  return new Refusal("usage", message);
}

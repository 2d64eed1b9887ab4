/** What the tool or the kernel has against a command. Never leaves the fake: it is printed, in words that mean the same as the tool's. */
export class IpsetRefusal extends Error {
  override readonly name = "IpsetRefusal";
  /** `kernel`: told with the line, and what came before it is in force; `syntax`: the tool understands no more, and
   * what it had collected is lost; `usage`: the same, without a line. */
  readonly kind: "kernel" | "syntax" | "usage";
  readonly code: number;

  constructor(kind: "kernel" | "syntax" | "usage", message: string, code: number = 1) {
    super(message);
    this.kind = kind;
    this.code = code;
  }
}

/** The kernel says no. */
export function kernel(message: string): IpsetRefusal {
  return new IpsetRefusal("kernel", message);
}

/** The tool can't make sense of a word. */
export function syntax(message: string): IpsetRefusal {
  return new IpsetRefusal("syntax", `Syntax error: ${message}`);
}

/** The tool can't make sense of a command. */
export function usage(message: string): IpsetRefusal {
  return new IpsetRefusal("usage", `${message}\nTry \`ipset help' for more information.`, 2);
}

/** What the tool says of the kernel's answers that come up. */
export const WORDS = {
  noSet: "The set with the given name does not exist",
  setExists: "Set cannot be created: set with the same name already exists",
  inUse: "Set cannot be destroyed: it is in use by a kernel component",
  otherType: "The sets cannot be swapped: their type does not match",
  noSecond: "Sets cannot be swapped: the second set does not exist",
  entryExists: "Element cannot be added to the set: it's already added",
  noEntry: "Element cannot be deleted from the set: it's not added",
  full: "Hash is full, cannot add more elements",
  prefix: "The value of the CIDR parameter of the IP address is invalid",
  invalid: "Kernel error received: Invalid argument",
  zero: "Null-valued element, cannot be stored in a hash type of set",
} as const;

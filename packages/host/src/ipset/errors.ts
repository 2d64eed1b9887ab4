import { ProxyError } from "@turnout/core";
import type { ErrorCode } from "@turnout/core";

/** What a complaint means, in the order in which they are looked for. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/Operation not permitted/, "permission_denied", "run as root, or with CAP_NET_ADMIN"],
  [
    /Cannot open session to kernel|typename '.*' is unknown|set type not supported/,
    "host_unsupported",
    "this kernel or tool lacks a type of sets, or all of them: modprobe ip_set",
  ],
  [/does not exist|it's not added/, "not_found", "another program removed it; it is compared and repaired"],
  [/same name already exists/, "already_exists", "a set of other type or options has the name"],
  [/Hash is full/, "limit_reached", "the set has as many entries as it may have (maxelem)"],
  [/in use by a kernel component/, "tool_failed", "a rule or another set still names it"],
  [/CIDR parameter|Null-valued element|type does not match|Invalid argument/, "invalid_object", "no set of this type takes it"],
];

/** Complaints that are of no single line. */
const OF_ALL = /^(?:Cannot open session|Kernel error received: Operation not permitted)/;
/** Complaints of the tool before it has asked the kernel for anything that the line wants. */
const OF_TOOL = /^(?:Syntax error|The set with the given name does not exist)/;

/** A line that `ipset restore` stopped at; none after it was carried out. */
export interface RefusedLine {
  /** From 1. */
  readonly number: number;
  readonly said: string;
  /**
   * Whether all lines before it are in force. The tool collects what it adds to (or takes out of) one set and hands it over together. When it
   * stumbles over a line itself, it forgets what it had collected.
   */
  readonly isAfterAll: boolean;
}

/** Read which line `ipset restore` stopped at; undefined when it didn't say, or when the fault is no line's. */
export function refusedLine(stderr: string): RefusedLine | undefined {
  const [, number, said = ""] = /^ipset v[\d.]+: Error in line (\d+): (.*)/m.exec(stderr) ?? [];
  return number === undefined || OF_ALL.test(said) ? undefined : { number: Number(number), said, isAfterAll: !OF_TOOL.test(said) };
}

/** Turn what ipset printed into an error. */
export function ipsetError(stderr: string, doing: string, line?: string): ProxyError {
  const said = stderr
    .split("\n")
    .map((text) => text.replace(/^ipset v[\d.]+: /, "").trim())
    .filter((text) => text !== "" && !text.startsWith("Try `"))
    .join("; ");
  const object = `${said === "" ? "no message" : said.slice(0, 300)}${line === undefined ? "" : ` (${line.slice(0, 300)})`}`;
  const found = MEANINGS.find(([pattern]) => pattern.test(said));
  return new ProxyError(found?.[1] ?? "tool_failed", `ipset could not ${doing}`, {
    object,
    ...(found === undefined ? {} : { hint: found[2] }),
  });
}

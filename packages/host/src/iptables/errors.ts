import { ProxyError } from "@turnout/core";
import type { ErrorCode } from "@turnout/core";

/** Exit code of the tools when a resource is lacking: the lock, rights, or (the nft variant) whatever the kernel refused. */
const RESOURCE_PROBLEM = 4;

/** What the tool says where there are rules that it can't list. */
const HIDDEN_RULES = /Parsing nftables rule failed|Table `\w+' is incompatible/;

/** What a complaint means, in the order in which they are looked for. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [
    // Its tool talks to the kernel by a raw socket.
    /\(legacy\).*(Permission denied|you must be root|Operation not permitted)/,
    "permission_denied",
    "run with CAP_NET_RAW, which legacy iptables takes besides CAP_NET_ADMIN",
  ],
  [/Permission denied|you must be root|Operation not permitted/, "permission_denied", "run as root, or with CAP_NET_ADMIN"],
  [
    HIDDEN_RULES,
    "host_unsupported",
    "another program added rules with nft that iptables can't read (nft list ruleset): have them use a table of their own, or use the nft backend",
  ],
  [
    /Failed to initialize nft|Could not fetch rule set generation id/,
    "host_unsupported",
    "this kernel has no nf_tables: use the legacy variant",
  ],
  [
    /Couldn't load (match|target)|missing kernel module|revision \d+ not supported|Table does not exist|can't initialize iptables table/i,
    "host_unsupported",
    "this kernel or tool lacks a netfilter extension",
  ],
  [
    /No chain\/target\/match by that name|does a matching rule exist|Chain '[^']*' does not exist|No such file or directory/,
    "not_found",
    "another program removed part of it; it is compared and repaired",
  ],
  [/Chain already exists|File exists/, "already_exists", "another program added to it; it is compared and repaired"],
];

/** Tell that a listing failed because there are rules that the tool doesn't understand, which may stand between ours. */
export function hidesRules({ object }: ProxyError): boolean {
  return object !== undefined && HIDDEN_RULES.test(object);
}

/** Tell whether the tool gave up because somebody else held the xtables lock. */
export function isLockHeld(code: number, stderr: string): boolean {
  return code === RESOURCE_PROBLEM && /xtables lock|xtables\.lock: Resource temporarily unavailable/.test(stderr);
}

/**
 * Say which line of its input `iptables-restore` complained about, 1 for the first; undefined when it didn't say.
 *
 * Edges: the nft variant is one line late in some of its complaints; what the kernel refuses at the end is told by the legacy variant
 * as the line of COMMIT.
 */
export function complainedLine(stderr: string): number | undefined {
  const found = /\bline:? (\d+)/.exec(withoutQuotes(stderr))?.[1];
  return found === undefined ? undefined : Number(found);
}

/**
 * Turn what an iptables tool printed into an error.
 *
 * Shape: `object` is its first sentence; texts in double quotes (comments of rules) are not looked at, so that they cannot mislead.
 */
export function iptablesError(stderr: string, doing: string, input: string = ""): ProxyError {
  const said = stderr
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("Try `") && !line.startsWith("# Warning"))
    .join("; ");
  const number = complainedLine(stderr);
  const line = number === undefined ? undefined : input.split("\n")[number - 1];
  const object = `${said === "" ? "no message" : said.slice(0, 300)}${line === undefined ? "" : ` (${line.slice(0, 300)})`}`;
  for (const [pattern, code, hint] of MEANINGS) {
    if (pattern.test(withoutQuotes(said))) return new ProxyError(code, `iptables could not ${doing}`, { object, hint });
  }
  return new ProxyError("tool_failed", `iptables could not ${doing}`, { object, hint: "see the log of -v for the input" });
}

function withoutQuotes(text: string): string {
  return text.replace(/"[^"]*"/g, '""');
}

import { ProxyError } from "@turnout/core";

/** What nft's first complaint means, by the error text of the kernel or the parser. */
const MEANINGS: readonly (readonly [RegExp, ConstructorParameters<typeof ProxyError>[0], string])[] = [
  [/Operation not permitted/, "permission_denied", "run as root, or with CAP_NET_ADMIN"],
  [/No such file or directory/, "not_found", "another program removed part of the table; it is compared and repaired"],
  [/File exists/, "already_exists", "another program added to the table; it is compared and repaired"],
  [
    /Operation not supported|not supported by|syntax error|Could not resolve service/,
    "host_unsupported",
    "check that nft and the kernel are recent enough",
  ],
  [/No buffer space available|Message too long|Cannot allocate memory/, "tool_failed", "raise net.core.wmem_max or free memory"],
];

/**
 * Turn what nft printed into an error.
 *
 * Shape: only the first line that starts with (or carries) `Error:` is looked at, so text echoed from a rule or a comment
 * further down cannot mislead.
 */
export function nftError(output: string, doing: string): ProxyError {
  const line = output.split("\n").find((text) => /(^|\s)Error: /.test(text)) ?? output.trim().split("\n")[0] ?? "";
  const complaint = line.slice(Math.max(0, line.indexOf("Error: "))).slice(0, 300);
  for (const [pattern, code, hint] of MEANINGS) {
    // Only the sentence before the first quote: names and comments are quoted behind it.
    if (pattern.test(complaint.split('"')[0] ?? "")) return new ProxyError(code, `nft could not ${doing}`, { object: complaint, hint });
  }
  return new ProxyError("tool_failed", `nft could not ${doing}`, {
    object: complaint === "" ? "no message" : complaint,
    hint: "see the log of -v for the transaction",
  });
}

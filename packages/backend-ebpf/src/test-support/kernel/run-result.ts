import type { Finding } from "@turnout/conformance";

/** What conformance-child.ts tells. */
export interface RunResult {
  /** The scenarios' names. */
  readonly scenarios: readonly string[];
  readonly hosts: number;
  /** How many packets and questions of sockets went through programs. */
  readonly packets: number;
  readonly findings: readonly Finding[];
  /** Why rules weren't asked about. */
  readonly skipped: readonly string[];
}

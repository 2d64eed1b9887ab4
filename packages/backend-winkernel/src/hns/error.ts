import { ProxyError } from "@turnout/core/backend";
import type { ErrorCode } from "@turnout/core";

/**
 * What a refusal of HNS means to us.
 * - `notFound`: it isn't there, which HNS says for sure; `exists`: something of its identity is there;
 * - `inUse`: something refers to it; `badReference`: it refers to something that isn't there, or to nothing;
 * - `down`: nobody answered, so nothing can be concluded; `denied`: no right;
 * - `unsupported`: this version can't; `refused`: whatever else.
 */
export type HnsFailure = "notFound" | "exists" | "inUse" | "badReference" | "down" | "denied" | "unsupported" | "refused";

interface Meaning {
  readonly code: ErrorCode;
  readonly hresults: readonly number[];
  readonly hint?: string;
}

/**
 * By what they mean, the HRESULTs, and what is said of them. There is no HRESULT of its own for a load balancer that isn't there.
 * @source winerror.h HCN_E_*; hcsshim hcn/hcnerrors.go
 */
const MEANINGS: Readonly<Record<HnsFailure, Meaning>> = {
  notFound: { code: "not_found", hresults: [0x803b0001, 0x803b0002, 0x803b0008, 0x80070490] },
  exists: {
    code: "already_exists",
    hresults: [0x803b0010, 0x803b0012, 0x803b0013, 0x800700b7],
    hint: "find who holds the port: hnsdiag list loadbalancers, or netsh int ipv4 show excludedportrange",
  },
  inUse: { code: "tool_failed", hresults: [0x803b002c], hint: "it is tried again when what refers to it is gone" },
  badReference: {
    code: "not_found",
    hresults: [0x803b000c, 0x803b001c],
    hint: "the CNI may not have made the pod's endpoint yet; it is tried again",
  },
  down: {
    code: "timed_out",
    hresults: [0x803b0020, 0x800706ba, 0x800706be],
    hint: "look at the Windows service hns: Get-Service hns",
  },
  denied: { code: "permission_denied", hresults: [0x80070005], hint: "run as NT AUTHORITY\\SYSTEM" },
  unsupported: { code: "host_unsupported", hresults: [0x80004001, 0x803b0015, 0x803b0016] },
  refused: { code: "tool_failed", hresults: [] },
};
const FAILURES = Object.keys(MEANINGS) as readonly HnsFailure[];

/** What HNS failed with, as it told it. */
export class HnsError extends Error {
  override readonly name = "HnsError";
  /** As an unsigned number. */
  readonly hresult: number;
  /** The text of its error record, or what failed. */
  readonly detail: string;

  /** @param hresult signed or not */
  constructor(hresult: number, detail: string) {
    super(`HNS: ${hexOf(hresult)}: ${detail}`);
    this.hresult = hresult >>> 0;
    this.detail = detail;
  }

  /** What it means. */
  get failure(): HnsFailure {
    return FAILURES.find((failure) => MEANINGS[failure].hresults.includes(this.hresult)) ?? "refused";
  }
}

/** Tell whether an error is HNS's, with one of these meanings if there are any. Never throws. */
export function isHnsError(error: unknown, ...failures: readonly HnsFailure[]): error is HnsError {
  return error instanceof HnsError && (failures.length === 0 || failures.includes(error.failure));
}

/** Say as an operating error what HNS failed with; whatever else was thrown stays as it is. */
export function reported(error: unknown, what: string, object: string): unknown {
  if (!isHnsError(error)) return error;
  const { code, hint } = MEANINGS[error.failure];
  const text = `${what} (${hexOf(error.hresult)}: ${error.detail})`;
  return new ProxyError(code, text, { object, cause: error, ...(hint === undefined ? {} : { hint }) });
}

/**
 * Read the error record that comes with a failed call; "" where there is none.
 *
 * Shape: `{"Success":false,"Error":"The reference is invalid… ","ErrorCode":2151350300}`. Its text may end in a blank.
 */
export function recordText(record: string | undefined): string {
  if (record === undefined || record === "") return "";
  try {
    const { Error: text } = JSON.parse(record) as { readonly Error?: unknown };
    return typeof text === "string" ? text.trim() : record;
  } catch (error) {
    return `${record} (no JSON: ${String(error)})`;
  }
}

function hexOf(hresult: number): string {
  return `0x${(hresult >>> 0).toString(16).padStart(8, "0")}`;
}

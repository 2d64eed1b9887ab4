import type { ServerReply, Outcome } from "./protocol.ts";

/** How long an attempt waits unless told otherwise. */
export const DEFAULT_TIMEOUT_MS = 2_000;

const OUTCOME_OF_ERRNO: Readonly<Record<string, Outcome>> = {
  ECONNREFUSED: "refused",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ETIMEDOUT: "timeout",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  // ICMP protocol unreachable: a host without SCTP.
  ENOPROTOOPT: "unreachable",
  // The same over IPv6: a parameter problem, next header unknown.
  EPROTO: "unreachable",
  // ICMP administratively prohibited.
  EACCES: "unreachable",
};

/**
 * Say what an error of a socket means for the attempt; undefined: it is no outcome but a mistake of the caller
 * (an address that is not here, a port in use). Pure.
 */
export function outcomeOf(error: unknown): Outcome | undefined {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? undefined : OUTCOME_OF_ERRNO[code];
}

/** Tell whether a send failed because the host's own filter stopped the packet, be it by drop or reject. Never throws. */
export function isFiltered(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EPERM";
}

/** Say who answers and whom it sees; a v4 client of a dual-stack socket gets its v4 name back. Pure. */
export function answerFor(name: string, address: string, port: number): ServerReply {
  const client = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return { server: name, client, clientPort: port, family: client.includes(":") ? "IPv6" : "IPv4" };
}

import { ProxyError } from "@turnout/core";

const KNOWN: Readonly<
  Record<string, { readonly code: "already_exists" | "permission_denied" | "tool_failed"; readonly what: string; readonly hint: string }>
> = {
  EADDRINUSE: {
    code: "already_exists",
    what: "another program has this port",
    hint: "find it with: ss -lnptu, and end it, or map another port",
  },
  EACCES: {
    code: "permission_denied",
    what: "this port may not be taken",
    hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE; map a higher one",
  },
  EPERM: {
    code: "permission_denied",
    what: "this port may not be taken",
    hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE; map a higher one",
  },
  EADDRNOTAVAIL: { code: "tool_failed", what: "the host has no such address", hint: "add the address to the host, or map to another one" },
  EMFILE: { code: "tool_failed", what: "this process may open no more sockets", hint: "raise the limit of open files: ulimit -n" },
};

/** Say why a socket can't be opened, in one line. Pure. */
export function listenError(name: string, cause: unknown): ProxyError {
  const { code } = cause as { readonly code?: unknown };
  const known = typeof code === "string" ? KNOWN[code] : undefined;
  if (known === undefined) return ProxyError.from(cause, "tool_failed", "this port can't be opened", { object: `listener ${name}` });
  return new ProxyError(known.code, known.what, { object: `listener ${name}`, hint: known.hint, cause });
}

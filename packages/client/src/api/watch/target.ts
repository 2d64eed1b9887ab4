import { ProxyError } from "@turnout/core";

/** Where a node-state server listens unless somebody says otherwise. */
export const DEFAULT_TARGET = "unix:///run/turnout/node.sock";

/** An address, read. */
export type ApiTarget =
  | { readonly kind: "unix"; readonly path: string }
  /** `host` is a name or an address without brackets. */
  | { readonly kind: "tls"; readonly host: string; readonly port: number };

/** Files of one side of a mutual TLS connection, PEM; read again when they change. */
export interface TlsFiles {
  /** Whose certificates of the other side are good. */
  readonly ca: string;
  /** Our own certificate, with intermediates. */
  readonly cert: string;
  readonly key: string;
}

/** The path of a unix socket has at most 107 bytes on Linux. @source unix(7) sun_path */
const PATH_BYTES_MAX = 107;
const PORT_MAX = 65_535;

/**
 * Read a target or a listen address: `unix:///absolute/path` (also `unix:/absolute/path`) or `tls://HOST:PORT`.
 * @throws {ProxyError} `invalid_object` for anything else.
 */
export function parseTarget(text: string): ApiTarget {
  const hint = `write unix:///absolute/path, e.g. ${DEFAULT_TARGET}, or tls://HOST:PORT`;
  const [, bracketed, plain, port] = /^tls:\/\/(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host !== undefined && Number(port) <= PORT_MAX) return { kind: "tls", host, port: Number(port) };
  const [, path] = /^unix:(?:\/\/)?(\/.*)$/s.exec(text) ?? [];
  if (path === undefined || path.endsWith("/") || path.includes("\0")) {
    const what = /^(tcp|dns|https?|ipv[46]):/.test(text) ? "over a network it takes mutual TLS" : "it is no address";
    throw new ProxyError("invalid_object", what, { object: JSON.stringify(text), hint });
  }
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new ProxyError("invalid_object", `the path of a socket has at most ${PATH_BYTES_MAX} bytes`, { object: JSON.stringify(text) });
  }
  return { kind: "unix", path };
}

/**
 * Read a target that is to be connected to, and see that files are there for one that needs them.
 * @throws {ProxyError} `invalid_object`.
 */
export function parseApiTarget(text: string, tls: TlsFiles | undefined): ApiTarget {
  const target = parseTarget(text);
  if (target.kind === "tls" && tls === undefined) {
    const hint = "pass --api-ca, --api-cert and --api-key";
    throw new ProxyError("invalid_object", "a target over TLS needs certificates", { object: JSON.stringify(text), hint });
  }
  return target;
}

/**
 * Make TLS files of what was typed: all three, or none.
 * @throws {ProxyError} `invalid_object` for some of them; `prefix` names the flags, e.g. `--api`.
 */
export function tlsFiles(files: { readonly [K in keyof TlsFiles]?: string | undefined }, prefix: string): TlsFiles | undefined {
  const { ca, cert, key } = files;
  if (ca === undefined && cert === undefined && key === undefined) return undefined;
  if (ca === undefined || cert === undefined || key === undefined) {
    const object = `${prefix}-ca, ${prefix}-cert, ${prefix}-key`;
    throw new ProxyError("invalid_object", "mutual TLS takes all three files", { object });
  }
  return { ca, cert, key };
}

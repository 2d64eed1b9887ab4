import { ProxyError } from "@turnout/core";

/** Where a brain listens unless somebody says otherwise. */
export const DEFAULT_TARGET = "unix:///run/turnout/node.sock";

/** The path of a unix socket has at most 107 bytes on Linux. @source unix(7) sun_path */
const PATH_BYTES_MAX = 107;

/**
 * Read a target or a listen address: `unix:///absolute/path`, also `unix:/absolute/path`.
 * @throws {ProxyError} `invalid_object` for anything else.
 */
export function parseTarget(text: string): { readonly path: string } {
  const [, path] = /^unix:(?:\/\/)?(\/.*)$/s.exec(text) ?? [];
  const hint = `write unix:///absolute/path, e.g. ${DEFAULT_TARGET}`;
  if (path === undefined || path.endsWith("/") || path.includes("\0")) {
    const what = /^(tcp|dns|https?|ipv[46]):/.test(text)
      ? "this version speaks the node-state API over unix sockets alone"
      : "it is no address";
    throw new ProxyError("invalid_object", what, { object: JSON.stringify(text), hint });
  }
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new ProxyError("invalid_object", `the path of a socket has at most ${PATH_BYTES_MAX} bytes`, { object: JSON.stringify(text) });
  }
  return { path };
}

/** What the head of a request says; what servers of this process don't look at is left out. */
export interface RequestHead {
  /** In capitals. */
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly host: string;
}

const LINE = /^([A-Z]{1,20}) ([!-~]+) HTTP\/1\.([01])$/;
/** No two parts of it match the same text: what fails to match fails in linear time. */
const HEADER = /^([\w!#$%&'*+.^`|~-]+):([^\0\r\n]*)$/;

/**
 * Read the head of an HTTP/1 request, without the empty line that ends it. Pure.
 *
 * Edges: a status for what is no such head; a request of HTTP/1.1 names one host. @source RFC 9112
 */
export function parseHead(text: string): RequestHead | 400 {
  const [first = "", ...lines] = text.split("\r\n");
  const [, method = "", target = "", minor] = LINE.exec(first) ?? [];
  if (minor === undefined) return 400;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, spaced = ""] = HEADER.exec(line) ?? [];
    if (name === undefined) return 400;
    const value = spaced.trim();
    const key = name.toLowerCase();
    if (key === "host" && headers.has(key)) return 400;
    headers.set(key, headers.has(key) ? `${headers.get(key)}, ${value}` : value);
  }
  if (minor === "1" && !headers.has("host")) return 400;
  const [path = "/", query = ""] = target.split("?", 2);
  return { method, path, query: new URLSearchParams(query), accept: headers.get("accept") ?? "", host: headers.get("host") ?? "" };
}

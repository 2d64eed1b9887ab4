/** As `join` of node:path, for paths without `..`. */
export function join(...parts: readonly string[]): string {
  return parts
    .filter((part) => part !== "")
    .join("/")
    .replace(/\/+/g, "/");
}

/** As `basename` of node:path. */
export function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** As `dirname` of node:path. */
export function dirname(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/** As `fileURLToPath` of node:url. */
export function fileURLToPath(url: URL): string {
  return url.pathname;
}

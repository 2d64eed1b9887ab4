import { readFileSync, statSync, type Stats } from "node:fs";
import { ProxyError, type ErrorCode } from "@turnout/core";

/**
 * A file whose text is read again when it changed on disk.
 *
 * Edges: follows symlinks, so the swaps kubelet makes for projected tokens are seen.
 */
export class CachedFile {
  readonly path: string;
  readonly #what: string;
  #version = "";
  #text = "";

  /** `what` names the file's role in errors, e.g. `the token file`. Nothing is read yet. */
  constructor(path: string, what: string) {
    this.path = path;
    this.#what = what;
  }

  /** Give the text as of now. @throws {ProxyError} `not_found`, `permission_denied`, `invalid_object` (e.g. a directory). */
  text(): string {
    try {
      const version = versionOf(statSync(this.path));
      if (version !== this.#version) {
        this.#text = readFileSync(this.path, "utf8");
        this.#version = version;
      }
      return this.#text;
    } catch (error) {
      throw fileError(error, `${this.#what} can't be read`, this.path);
    }
  }

  /** A text that is another one when the file was written, replaced, deleted or made. */
  stamp(): string {
    const stats = statSync(this.path, { throwIfNoEntry: false });
    return stats === undefined ? "none" : versionOf(stats);
  }

  /** Read at the next use, whatever the disk says. */
  forget(): void {
    this.#version = "";
  }
}

function versionOf({ mtimeMs, ctimeMs, size, ino }: Stats): string {
  return `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
}

/** Turn what node:fs throws into a ProxyError about `path`; a ProxyError stays itself. */
export function fileError(error: unknown, what: string, path: string): ProxyError {
  const codes: Readonly<Record<string, ErrorCode>> = { ENOENT: "not_found", EACCES: "permission_denied", EPERM: "permission_denied" };
  const errno = errnoOf(error) ?? "";
  const code = Object.hasOwn(codes, errno) ? (codes[errno] ?? "invalid_object") : "invalid_object";
  const object = typeof error === "object" && error !== null && "path" in error ? String(error.path) : path;
  const hint = code === "not_found" ? "check the path" : code === "permission_denied" ? "check its permissions" : undefined;
  return ProxyError.from(error, code, what, { object, ...(hint === undefined ? {} : { hint }) });
}

/** Give the `code` of a system error (`ENOENT`, `ECONNRESET`); undefined for others. Never throws. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

import { readFile, writeFile } from "node:fs/promises";
import { ProxyError } from "@turnout/core";

/** Kernel parameters of this network namespace. */
export interface Sysctl {
  /** Read one, without the line's end. @throws {ProxyError} `invalid_object` for a bad name, `not_found`, `permission_denied`, `tool_failed`. */
  read(name: string): Promise<string>;
  /** Set one. @throws as {@link Sysctl.read}; `invalid_object` also when the kernel refuses the value. */
  write(name: string, value: string | number): Promise<void>;
}

/** Make the real {@link Sysctl}. `root` is where the parameters are mounted. */
export function createSysctl(root: string = "/proc/sys"): Sysctl {
  return {
    async read(name: string): Promise<string> {
      const path = `${root}/${sysctlPath(name)}`;
      try {
        return (await readFile(path, "utf8")).trimEnd();
      } catch (error) {
        throw sysctlError(name, "can't be read", error);
      }
    },
    async write(name: string, value: string | number): Promise<void> {
      const path = `${root}/${sysctlPath(name)}`;
      try {
        // No O_CREAT: a wrong name is not_found, also on a file system where files can be made.
        await writeFile(path, `${value}\n`, { flag: "r+" });
      } catch (error) {
        throw sysctlError(name, `can't be set to ${value}`, error);
      }
    },
  };
}

/**
 * Turn a parameter's name into its path below /proc/sys, as sysctl(8) does.
 *
 * Edges: whichever of `.` and `/` comes first separates, the other one stands for itself or for a dot in an
 * interface's name: `net.ipv4.conf.eth0/100.rp_filter` and `net/ipv4/conf/eth0.100/rp_filter` are one parameter.
 * @throws {ProxyError} `invalid_object` when the name would leave /proc/sys or has an empty part.
 */
export function sysctlPath(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  const parts = first === "/" ? name.split("/") : name.split(".").map((part) => part.replaceAll("/", "."));
  if (name.includes("\0") || parts.length < 2 || parts.some((part) => part === "" || part === "." || part === "..")) {
    throw new ProxyError("invalid_object", "not the name of a kernel parameter", { object: name });
  }
  return parts.join("/");
}

function sysctlError(name: string, what: string, error: unknown): ProxyError {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  const sentence = `a kernel parameter ${what}`;
  switch (code) {
    case "ENOENT":
      return new ProxyError("not_found", sentence, { object: name, hint: "this kernel or namespace has no such parameter", cause: error });
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new ProxyError("permission_denied", sentence, { object: name, hint: "run as root, with /proc/sys writable", cause: error });
    case "EINVAL":
    case "ERANGE":
      return new ProxyError("invalid_object", sentence, { object: name, cause: error });
    default:
      return ProxyError.from(error, "tool_failed", sentence, { object: name });
  }
}

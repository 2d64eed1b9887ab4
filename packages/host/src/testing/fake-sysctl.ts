import { ProxyError } from "@turnout/core";

/** Kernel parameters of a network namespace, in memory. */
export interface FakeSysctl {
  /** By slashed name. */
  readonly values: ReadonlyMap<string, string>;
  /** Read one. @throws {ProxyError} `invalid_object` for a bad name, `not_found`. */
  read(name: string): Promise<string>;
  /** Set one. @throws as {@link FakeSysctl.read}. */
  write(name: string, value: string | number): Promise<void>;
}

/** Make a {@link FakeSysctl} that has exactly the given parameters (dotted or slashed names); any other is `not_found`. */
export function createFakeSysctl(parameters: Readonly<Record<string, string>>): FakeSysctl {
  const values = new Map(Object.entries(parameters).map(([name, value]) => [sysctlPath(name), value]));
  const known = (name: string): string => {
    const path = sysctlPath(name);
    if (values.has(path)) return path;
    throw new ProxyError("not_found", "a kernel parameter can't be used", { object: name });
  };
  return {
    values,
    read: async (name: string): Promise<string> => values.get(known(name)) ?? "",
    write: async (name: string, value: string | number): Promise<void> => {
      values.set(known(name), String(value));
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

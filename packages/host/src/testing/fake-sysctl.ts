import { ProxyError } from "@turnout/core";
import { sysctlPath } from "../facts/sysctl.ts";
import type { Sysctl } from "../facts/sysctl.ts";

/** A {@link Sysctl} in memory; `values` is keyed by slashed name. */
export interface FakeSysctl extends Sysctl {
  readonly values: ReadonlyMap<string, string>;
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

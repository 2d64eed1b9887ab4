import { ProxyError } from "@turnout/core/backend";
import type { HnsHost } from "./host.ts";

/** The HNS of a host where there is none to ask: every call says so. */
export function absentHns(): HnsHost {
  const absent = (): Promise<never> =>
    Promise.reject(
      new ProxyError("tool_missing", "no Host Network Service can be asked", {
        hint: "it is a part of Windows, and this version has no binding to computenetwork.dll yet; choose another backend",
      }),
    );
  return { version: absent, list: absent, create: absent, modifyLoadBalancer: absent, remove: absent, close: () => undefined };
}

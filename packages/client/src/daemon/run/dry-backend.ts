import { ProxyError, type Backend, type KernelObject } from "@turnout/core";

/** What a host refuses to somebody without its tools or rights; a dry run needs neither. */
const BLIND = ["permission_denied", "tool_missing", "host_unsupported"] as const;

/**
 * Make a backend for a dry run: the given one, which can't apply anything.
 *
 * Edges: where this process may not look at the host, `onBlind` hears why and the plan is one for an empty host.
 */
export function dryBackend<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  onBlind: (reason: ProxyError) => void,
): Backend<H, K, S> {
  return {
    skeleton: (context) => backend.skeleton(context),
    render: (row, context) => backend.render(row, context),
    isShared: (object) => backend.isShared?.(object) === true,
    isOptional: (object) => backend.isOptional?.(object) === true,
    plan: (delta) => backend.plan(delta),
    explain: (plan) => backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2),
    observe: async (signal) => {
      try {
        return await backend.observe(signal);
      } catch (error) {
        if (!ProxyError.is(error) || !BLIND.some((code) => code === error.code)) throw error;
        onBlind(error);
        return { objects: new Map(), lingering: [] };
      }
    },
    apply: () => Promise.reject(new Error("a dry run applies nothing")),
  };
}

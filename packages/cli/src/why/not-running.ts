import type { Cause, ProxyError } from "@turnout/core";
import { UNREACHED } from "../running-proxy.ts";

/** Say that the proxy does not answer. Pure. */
export function notRunning({ code, what, object = "", hint }: ProxyError, source: string): Cause {
  const port = /:(\d+)(?:,|$)/.exec(object)?.[1] ?? "10249";
  const isLate = code === "timed_out";
  const isUnreached = what.startsWith(UNREACHED);
  const effect = isUnreached ? "So whether it runs can't be told" : "No change of a Service or endpoint comes into force";
  const says = `${what.replace(/ \(.*/, "")} (${object})${isLate ? "" : ": it may not run"}. ${effect}`;
  const common = { id: "not_running", isSure: false, says } as const;
  // Whether something drops packets on the way to it, or it hangs, who asked knows best.
  if (isLate && hint !== undefined) return { ...common, show: [`ss -tlnp sport = :${port}`, "turnout doctor"], fix: hint };
  return {
    ...common,
    show: [`ss -tlnp sport = :${port}`],
    fix: "see why it ended or hangs, and start it again; if it serves metrics at another address, pass that with --address",
    commands: [
      ...(source.startsWith("file:") ? ["pgrep -af turnout"] : ["kubectl -n kube-system get pods -o wide"]),
      "journalctl -u turnout",
    ],
  };
}

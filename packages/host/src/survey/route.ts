import type { Exec, IPFamily } from "@turnout/core";

/** Where the kernel sends a packet, or why it sends it nowhere. */
export type Route =
  | {
      readonly is: "way";
      readonly device: string;
      readonly nextHop: string | undefined;
      readonly isLocal: boolean;
      readonly source: string | undefined;
    }
  | { readonly is: "none"; readonly why: "no_route" | "rp_filter" | "refused" | "other"; readonly says: string };

/** What to look up. */
export interface RouteQuestion {
  readonly to: string;
  /** Absent: the host chooses. */
  readonly from?: string;
  /** The device a packet comes in by; absent: the host itself sends it. */
  readonly by?: string;
}

/** Ask the kernel for a route as it would look one up for a packet, with its checks of the source. */
export async function routeFor(exec: Exec, family: IPFamily, { to, from, by }: RouteQuestion, signal: AbortSignal): Promise<Route> {
  const args = [
    "-j",
    family === "IPv4" ? "-4" : "-6",
    "route",
    "get",
    to,
    ...(from === undefined ? [] : ["from", from]),
    ...(by === undefined ? [] : ["iif", by]),
  ];
  const { code, stdout, stderr } = await exec.run("ip", args, { signal });
  return readRoute(code, stdout, stderr);
}

/** Write the command that shows a route. Pure. */
export function routeCommand({ to, from, by }: RouteQuestion): string {
  return `ip route get ${to}${from === undefined ? "" : ` from ${from}`}${by === undefined ? "" : ` iif ${by}`}`;
}

/** Read what `ip -j route get` answered. Pure. */
export function readRoute(code: number, stdout: string, stderr: string): Route {
  const [found] = code === 0 ? (JSON.parse(stdout === "" ? "[]" : stdout) as readonly Readonly<Record<string, unknown>>[]) : [];
  if (found === undefined) return refusal(stderr);
  const type = textOf(found["type"]) ?? "unicast";
  if (["unreachable", "blackhole", "prohibit", "throw"].includes(type))
    return { is: "none", why: "no_route", says: `a route of type ${type}` };
  const gateway = textOf(found["gateway"]) ?? textOf((found["via"] as Readonly<Record<string, unknown>> | undefined)?.["host"]);
  return { is: "way", device: textOf(found["dev"]) ?? "", nextHop: gateway, isLocal: type === "local", source: textOf(found["prefsrc"]) };
}

/** By what the kernel says of a lookup. @source linux net/ipv4/route.c ip_route_input_slow, fib_validate_source */
function refusal(stderr: string): Route {
  const says =
    stderr
      .trim()
      .split("\n")[0]
      ?.replace(/^RTNETLINK answers: /, "") ?? "";
  if (/Invalid cross-device link/.test(says)) return { is: "none", why: "rp_filter", says };
  // Since 6.13 whatever keeps a packet from being taken in is this.
  if (/Invalid argument/.test(says)) return { is: "none", why: "refused", says };
  if (/unreachable|No route|Permission denied|No such process/i.test(says)) return { is: "none", why: "no_route", says };
  return { is: "none", why: "other", says };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

import { ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";

/** Where the kernel sends a packet, or why it sends it nowhere. */
export type Route =
  | {
      readonly is: "way";
      readonly device: string;
      readonly nextHop: string | undefined;
      readonly isLocal: boolean;
      readonly source: string | undefined;
      /** No narrower route than the default one fits; absent: one does, or nobody asked. */
      readonly isDefault?: boolean;
    }
  | {
      readonly is: "none";
      readonly why: "no_route" | "rp_filter" | "refused" | "other";
      readonly says: string;
      /** Of `rp_filter`: the device that answers would leave by. */
      readonly elsewhere?: string;
      /** The routing rule that is why. */
      readonly rule?: { readonly text: string; readonly priority: number };
    };

/** What to look up. */
export interface RouteQuestion {
  readonly to: string;
  /** Absent: the host chooses. */
  readonly from?: string;
  /** The device a packet comes in by; absent: the host itself sends it. */
  readonly by?: string;
  /** The packet's mark; absent: none. */
  readonly mark?: number;
}

/** Ask the kernel for a route as it would look one up for a packet, with its checks of the source. */
export async function routeFor(exec: Exec, family: IPFamily, question: RouteQuestion, signal: AbortSignal): Promise<Route> {
  const { code, stdout, stderr } = await exec.run("ip", getArguments(family, question, []), { signal });
  return readRoute(code, stdout, stderr);
}

/** Tell whether the route that fits is the default one; false where `ip` or the kernel can't tell. */
export async function isByDefault(exec: Exec, family: IPFamily, question: RouteQuestion, signal: AbortSignal): Promise<boolean> {
  const { code, stdout } = await exec.run("ip", getArguments(family, question, ["fibmatch"]), { signal });
  return code === 0 && firstOf(stdout)?.["dst"] === "default";
}

function getArguments(family: IPFamily, { to, from, by, mark = 0 }: RouteQuestion, how: readonly string[]): readonly string[] {
  const sender = [
    ...(from === undefined ? [] : ["from", from]),
    ...(by === undefined ? [] : ["iif", by]),
    ...(mark === 0 ? [] : ["mark", `0x${mark.toString(16)}`]),
  ];
  return ["-j", family === "IPv4" ? "-4" : "-6", "route", "get", ...how, to, ...sender];
}

/** Write the command that shows a route. Pure. */
export function routeCommand({ to, from, by, mark = 0 }: RouteQuestion): string {
  const marked = mark === 0 ? "" : ` mark 0x${mark.toString(16)}`;
  return `ip route get ${to}${from === undefined ? "" : ` from ${from}`}${by === undefined ? "" : ` iif ${by}`}${marked}`;
}

/** Read what `ip -j route get` answered. Pure. */
export function readRoute(code: number, stdout: string, stderr: string): Route {
  const found = code === 0 ? firstOf(stdout) : undefined;
  if (found === undefined) return refusal(stderr);
  const type = textOf(found["type"]) ?? "unicast";
  if (["unreachable", "blackhole", "prohibit", "throw"].includes(type))
    return { is: "none", why: "no_route", says: `a route of type ${type}` };
  const gateway = textOf(found["gateway"]) ?? textOf((found["via"] as Readonly<Record<string, unknown>> | undefined)?.["host"]);
  return { is: "way", device: textOf(found["dev"]) ?? "", nextHop: gateway, isLocal: type === "local", source: textOf(found["prefsrc"]) };
}

function firstOf(stdout: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const [found] = JSON.parse(stdout === "" ? "[]" : stdout) as readonly (Readonly<Record<string, unknown>> | null)[];
    return found ?? undefined;
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "what ip told of a route can't be read", { object: stdout.slice(0, 200) });
  }
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

import { cidrContains, parseCIDR, parseIP, ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";

/** A route of the main table. */
export interface HostRoute {
  /** A CIDR; the default route's is 0.0.0.0/0 or ::/0. */
  readonly range: string;
  readonly prefixLength: number;
  /** `unicast`, or what refuses: `unreachable`, `blackhole`, `prohibit`. */
  readonly type: string;
  readonly device: string;
  readonly nextHop: string | undefined;
  readonly metric: number;
}

const REFUSING: readonly string[] = ["unreachable", "blackhole", "prohibit"];

/** Read the routes of the main table. @throws {ProxyError} `tool_failed` for what can't be read. */
export async function readHostRoutes(exec: Exec, family: IPFamily, signal: AbortSignal): Promise<readonly HostRoute[]> {
  const { code, stdout } = await exec.run("ip", ["-j", family === "IPv4" ? "-4" : "-6", "route", "show"], { signal });
  return code === 0 ? hostRoutesIn(stdout, family) : [];
}

/** Read what `ip -j route show` printed. Pure. @throws {ProxyError} `tool_failed` for what can't be read. */
export function hostRoutesIn(text: string, family: IPFamily): readonly HostRoute[] {
  const [any, full] = family === "IPv4" ? ["0.0.0.0/0", 32] : ["::/0", 128];
  try {
    return (JSON.parse(text === "" ? "[]" : text) as readonly Readonly<Record<string, unknown>>[]).map((one) => {
      const dst = String(one["dst"]);
      const range = dst === "default" ? any : dst.includes("/") ? dst : `${dst}/${full}`;
      return {
        range,
        prefixLength: Number(range.slice(range.indexOf("/") + 1)),
        type: typeof one["type"] === "string" ? one["type"] : "unicast",
        device: typeof one["dev"] === "string" ? one["dev"] : "",
        nextHop: typeof one["gateway"] === "string" ? one["gateway"] : undefined,
        metric: Number(one["metric"] ?? 0),
      };
    });
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "what ip told of its routes can't be read", { object: text.slice(0, 200) });
  }
}

/** The routes that fit an address, the one that is taken first. Pure. */
export function fittingRoutes(routes: readonly HostRoute[], address: string): readonly HostRoute[] {
  const ip = parseIP(address);
  const fits = ({ range }: HostRoute): boolean => {
    const cidr = parseCIDR(range);
    return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
  };
  return routes.filter(fits).toSorted((a, b) => b.prefixLength - a.prefixLength || a.metric - b.metric);
}

/** The route that refuses what is sent to an address; undefined: none does. Pure. */
export function refusingRoute(routes: readonly HostRoute[], address: string): HostRoute | undefined {
  const [taken] = fittingRoutes(routes, address);
  return taken !== undefined && REFUSING.includes(taken.type) ? taken : undefined;
}

/** Write a route as `ip` takes it after `ip route del`. Pure. */
export function routeText({ range, type, device, nextHop, metric }: HostRoute): string {
  const kind = type === "unicast" ? "" : `${type} `;
  const by = type === "unicast" ? `${nextHop === undefined ? "" : ` via ${nextHop}`}${device === "" ? "" : ` dev ${device}`}` : "";
  return `${kind}${range.replace(/^(?:0\.0\.0\.0|::)\/0$/, "default")}${by}${metric === 0 ? "" : ` metric ${metric}`}`;
}

import type { SurveyFiles } from "./files.ts";

/** Flag of a route by a gateway. @source linux/route.h RTF_GATEWAY */
const GATEWAY = 2;

/** Name the devices by which this host has routes to a next hop: other hosts are behind them. */
export async function readUplinks({ read }: Pick<SurveyFiles, "read">): Promise<readonly string[]> {
  return uplinksIn((await read("/proc/net/route")) ?? "", (await read("/proc/net/ipv6_route")) ?? "");
}

/** Read what /proc/net/route and /proc/net/ipv6_route say. Pure. */
export function uplinksIn(ipv4: string, ipv6: string): readonly string[] {
  const found = [
    // Device, destination, gateway, flags, …
    ...ipv4
      .split("\n")
      .slice(1)
      .map((line) => line.split("\t"))
      .map(([device = "", , , flags = ""]) => [device, flags]),
    // Destination, source, next hop, metric, references, use, flags, device.
    ...ipv6
      .split("\n")
      .map((line) => line.trim().split(/ +/))
      .map((words) => [words[9] ?? "", words[8] ?? ""]),
  ];
  const uplinks = found.filter(([device = "", flags = ""]) => device !== "" && (Number.parseInt(flags, 16) & GATEWAY) !== 0);
  return [...new Set(uplinks.map(([device = ""]) => device))];
}

import type { Device } from "@turnout/host";
import type { IPFamily } from "@turnout/core";
import { bySeverity, NO_PROXY } from "./finding.ts";
import type { Finding, KnownProxy } from "./finding.ts";
import { parameterFindings } from "./parameter-findings.ts";
import { proxyFindings } from "./proxy-findings.ts";
import { ruleFindings } from "./rule-findings.ts";
import type { HostSurvey } from "../readings/survey.ts";
import { fittingRoutes, refusingRoute, routeText } from "../readings/host-routes.ts";
import type { HostRoute } from "../readings/host-routes.ts";

/** Where the default route leads, as far as an address goes that no other route has. */
const ANYWHERE: Readonly<Record<IPFamily, string>> = { IPv4: "192.0.0.8", IPv6: "100::1" };

/**
 * Report a host whose own programs have no route to cluster IPs: connect() fails before any rule, as a route is looked up first. Pure.
 *
 * Edges: of the families that the proxy serves and the host has an address of; where no proxy is known to run, of the first one that the host has an
 * address of. Nothing where each known service range has a route.
 * @source kubernetes#57534, #110659; k3s#8748
 */
function routeFindings({ routes, addresses, devices }: HostSurvey, { served, routesFirst, serviceRanges }: KnownProxy): readonly Finding[] {
  if (!routesFirst || routes === undefined) return [];
  const global = addresses.filter(({ ip }) => !/^(?:127\.|169\.254\.|fe80:|::1$)/.test(ip));
  const own = (["IPv4", "IPv6"] as const).filter((family) => global.some(({ ip }) => ip.includes(":") === (family === "IPv6")));
  const families = served.size > 0 ? own.filter((family) => served.has(family)) : own.slice(0, 1);
  return families.flatMap((family) => {
    const ranges = serviceRanges.filter((range) => range.includes(":") === (family === "IPv6"));
    const targets = ranges.length > 0 ? ranges : [ANYWHERE[family]];
    const missing = targets.find((target) => !isRouted(routes, target.replace(/\/.*/, "")));
    if (missing === undefined) return [];
    const refusing = refusingRoute(routes, missing.replace(/\/.*/, ""));
    const tool = family === "IPv4" ? "ip" : "ip -6";
    const range = ranges.length > 0 ? missing : "SERVICE-RANGE";
    const isOfFamily = (address: string): boolean => address.includes(":") === (family === "IPv6");
    const links = new Set(global.flatMap(({ ip, link }) => (isOfFamily(ip) ? [link] : [])));
    const device = devices.find(({ isLoopback, isUp, name }) => !isLoopback && isUp && links.has(name))?.name ?? "DEVICE";
    return [
      {
        id: "no-default-route",
        severity: "risk",
        what: `programs of this host can't connect to ${family} cluster IPs: the kernel finds no route, before any rule`,
        because:
          refusing === undefined
            ? ranges.length > 0
              ? `no default ${family} route, and no other one for ${missing}`
              : `no default ${family} route; one for the service range would do, which is known only while the proxy answers`
            : `the route ${routeText(refusing)}`,
        fix: `${tool} route add ${range} dev ${device}, or a default route; any device will do, since rules translate the packet before it leaves`,
      },
    ];
  });
}

function isRouted(routes: readonly HostRoute[], address: string): boolean {
  return fittingRoutes(routes, address).length > 0 && refusingRoute(routes, address) === undefined;
}

/** Devices that are named, at most. */
const NAMED_MAX = 4;

/** What is said of devices that lead to pods, and by which nothing goes. Pure. */
function deviceFindings({ devices }: HostSurvey): readonly Finding[] {
  const lost = devices.filter(({ namespace, isUp, hasCarrier }) => namespace !== undefined && !(isUp && hasCarrier));
  if (lost.length === 0) return [];
  const down = lost.find(({ isUp }) => !isUp);
  const named = lost.slice(0, NAMED_MAX).map((device) => stateText(device, devices));
  const up = down === undefined ? "" : `ip link set ${down.name} up; `;
  return [
    {
      id: "pod-device-down",
      severity: "risk",
      what: "nothing gets to pods, or from them, by devices that are down or without carrier",
      because: `${named.join(", ")}${lost.length > named.length ? ` and ${lost.length - named.length} more` : ""}`,
      fix: `${up}where a device has no carrier, its other end is down or gone: delete the pod, so that it is made again`,
    },
  ];
}

function stateText({ name, master, isUp }: Device, devices: readonly Device[]): string {
  const bridge = devices.find(({ index }) => index === master)?.name;
  return `${name}${bridge === undefined ? "" : ` (a port of ${bridge})`} ${isUp ? "has no carrier" : "is down"}`;
}

/**
 * Say what of a host is against a service proxy, whichever backend it has, the most serious first. Pure.
 *
 * Edges: what could not be seen is no finding. A host that nothing is wrong with has none but notes.
 */
export function diagnose(survey: HostSurvey, proxy: KnownProxy = NO_PROXY): readonly Finding[] {
  return bySeverity([
    ...proxyFindings(survey),
    ...parameterFindings(survey, proxy),
    ...deviceFindings(survey),
    ...routeFindings(survey, proxy),
    ...ruleFindings(survey, proxy),
  ]);
}

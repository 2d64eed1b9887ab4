import type { Finding, KnownProxy } from "./finding.ts";
import { parameterName } from "../readings/parameters.ts";
import type { HostSurvey } from "../readings/survey.ts";

const NEARLY_FULL = 0.8;
const FULL = 0.97;
const STRICT = 1;
/** Devices that one line names. */
const NAMED_MAX = 5;
/** Bridges whose ports are no pods of Kubernetes. */
const OTHERS_BRIDGE = /^(?:docker0|br-[0-9a-f]{12}|virbr\d+|podman\d+|lxcbr\d+|ovs-|turnout0$|kube-ipvs0$)/;

/** Tell whether a bridge is one whose ports are no pods of Kubernetes, by its name. Pure. */
export function isOthersBridge(name: string): boolean {
  return OTHERS_BRIDGE.test(name);
}

/** What kernel parameters say against a service proxy. Pure. */
export function parameterFindings(survey: HostSurvey, proxy: KnownProxy): readonly Finding[] {
  return [
    ...forwarding(survey, proxy),
    ...conntrack(survey),
    ...reversePaths(survey),
    // A process answers by the connection that it was asked by.
    ...(proxy.answersItself ? [] : bridges(survey)),
  ];
}

/** What is lost where nothing is forwarded. */
const LOST = "what is for an endpoint in a pod, or on another node, is dropped";
const LOST_NEXT_TO =
  "what pods send to pods elsewhere, and to other hosts, is dropped. Services don't need it, as the proxy's process answers them";

function forwarding({ parameters, addresses }: HostSurvey, { served, answersItself }: KnownProxy): readonly Finding[] {
  const findings: Finding[] = [];
  const lost = answersItself ? LOST_NEXT_TO : LOST;
  const severity = answersItself ? "risk" : "fault";
  if (parameters.forwardsIPv4 === 0)
    findings.push({
      id: "ipv4-forwarding-off",
      severity,
      what: `this host forwards no IPv4 packets: ${lost}`,
      because: `${parameterName("forwardsIPv4")} is 0`,
      fix: "sysctl -w net.ipv4.ip_forward=1 (and keep it in /etc/sysctl.d)",
    });
  const isGlobal = (ip: string): boolean => ip.includes(":") && ip !== "::1" && !ip.startsWith("fe80:");
  const global = addresses.find(({ ip, link }) => link !== "lo" && isGlobal(ip));
  const isServed = served.has("IPv6");
  if (parameters.forwardsIPv6 === 0 && (isServed || global !== undefined))
    findings.push({
      id: "ipv6-forwarding-off",
      severity: isServed ? severity : "note",
      what: isServed
        ? `this host forwards no IPv6 packets: ${lost}`
        : "this host forwards no IPv6 packets: that is a fault if the cluster has IPv6 Services",
      because: `${parameterName("forwardsIPv6")} is 0, and ${isServed ? "the proxy serves IPv6 Services" : `${global?.link} has ${global?.ip}`}`,
      fix: "sysctl -w net.ipv6.conf.all.forwarding=1 (where addresses come from router advertisements, set accept_ra=2 first)",
    });
  return findings;
}

function conntrack({ parameters: { conntrackCount, conntrackMax } }: HostSurvey): readonly Finding[] {
  if (conntrackCount === undefined || conntrackMax === undefined || conntrackMax === 0) return [];
  const share = conntrackCount / conntrackMax;
  if (share < NEARLY_FULL) return [];
  const isFull = share >= FULL;
  return [
    {
      id: "conntrack-full",
      severity: isFull ? "fault" : "risk",
      what: isFull ? "conntrack is full: new connections are dropped" : "conntrack is nearly full: when it is, new connections are dropped",
      because: `${conntrackCount} of ${conntrackMax} entries (${parameterName("conntrackMax")})`,
      fix: `sysctl -w ${parameterName("conntrackMax")}=${2 * conntrackMax}, or --conntrack-max-per-core; conntrack -S shows drops`,
    },
  ];
}

/** The larger of a device's value and that of `all` counts. @source Linux Documentation/networking/ip-sysctl.rst rp_filter */
function reversePaths({ deviceParameters }: HostSurvey): readonly Finding[] {
  const all = deviceParameters.find(({ name }) => name === "all")?.rpFilter ?? 0;
  const strict = deviceParameters.filter(({ name, rpFilter }) => name !== "all" && name !== "lo" && Math.max(all, rpFilter) === STRICT);
  if (strict.length === 0) return [];
  const names = strict.slice(0, NAMED_MAX).map(({ name }) => name);
  const more = strict.length - names.length;
  return [
    {
      id: "rp-filter-strict",
      severity: "risk",
      what: "packets are dropped that come by another device than the way back goes: that meets hosts with several ways and some pod networks",
      because: `rp_filter is 1 (strict) for ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`,
      fix: "sysctl -w net.ipv4.conf.all.rp_filter=2 (loose; the larger of all's and a device's value counts)",
    },
  ];
}

function bridges({ devices, parameters }: HostSurvey): readonly Finding[] {
  const bridge = devices.find(({ kind, name }) => kind === "bridge" && !isOthersBridge(name));
  if (bridge === undefined || parameters.bridgeCallsIPv4 === 1) return [];
  const isLoaded = parameters.bridgeCallsIPv4 !== undefined;
  return [
    {
      id: "bridge-not-called",
      severity: "risk",
      what: "a pod that reaches a Service with an endpoint on the same bridge gets answers from the endpoint's address, and drops them",
      because: isLoaded
        ? `${parameterName("bridgeCallsIPv4")} is 0, and ${bridge.name} is a bridge`
        : `br_netfilter isn't loaded, and ${bridge.name} is a bridge`,
      fix: "modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1",
    },
  ];
}

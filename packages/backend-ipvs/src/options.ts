import { parseCIDR } from "@turnout/core";
import { listOption, ProxyError, switchOption, textOption, wordOption } from "@turnout/core/backend";
import type { IPFamily, OptionOf, OptionsOf, Plain } from "@turnout/core/backend";
import type { IptablesVariant } from "@turnout/host/iptables";
import type { IpvsTimeouts } from "@turnout/host/ipvs/model";

/** What this backend can be told. */
export interface IpvsOptions {
  /** How a real server is chosen, e.g. `rr`; in the kernel's words. */
  readonly scheduler: string;
  /** Schedulers of single Services, by `namespace/name`. */
  readonly schedulers: Readonly<Record<string, string>>;
  /** Virtual servers at addresses in these ranges are somebody else's, whatever else speaks for us. */
  readonly excludeCIDRs: readonly string[];
  /** How long a real server that is not wanted any more keeps its TCP connections, in seconds. */
  readonly drainSeconds: number;
  /** Where a Local policy has no endpoint here: `drop`, or `cluster`, which sends to endpoints elsewhere as kube-proxy does in this mode. */
  readonly noLocalEndpoints: "drop" | "cluster";
  /** Answer ARP only for addresses of the interface that was asked (arp_ignore, arp_announce). */
  readonly strictARP: boolean;
  /** Timeouts of the connection table in seconds; 0: as the kernel has them. */
  readonly timeouts: IpvsTimeouts;
  /** Which implementation of iptables to use; `auto`: the one the rest of the host uses. */
  readonly variant: "auto" | IptablesVariant;
}

/** What rendering knows of the host. */
export interface IpvsFacts {
  /** Addresses of the host per family, canonical, without link-local ones and those on the dummy device. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
}

const SCHEDULER = /^[a-z]{0,15}$/;
const SCHEDULER_HINT = "e.g. rr, wrr, lc, wlc, sh, mh, sed, nq";

/** The options by name. Those of kube-proxy's `ipvs` section have its names; seconds may be Go durations as `15m`, of which parts of a second are left out, as in kube-proxy. */
export const IPVS_OPTIONS: OptionsOf<IpvsOptions> = {
  scheduler: textOption("scheduler", "", "the name of a scheduler", SCHEDULER, SCHEDULER_HINT),
  schedulers: { name: "schedulers", kind: "map", otherwise: {}, must: "an object", hint: `e.g. {"shop/cart": "lc"}`, read: readSchedulers },
  excludeCIDRs: listOption("excludeCIDRs", "a CIDR, e.g. 192.0.2.0/24", (one) => parseCIDR(one)?.text),
  drainSeconds: secondsOption("drain-seconds", 900),
  noLocalEndpoints: wordOption("no-local-endpoints", ["drop", "cluster"], "drop"),
  strictARP: switchOption("strictARP", false),
  timeouts: { tcp: secondsOption("tcpTimeout", 0), tcpFin: secondsOption("tcpFinTimeout", 0), udp: secondsOption("udpTimeout", 0) },
  variant: wordOption("variant", ["auto", "legacy", "nft"], "auto"),
};

function readSchedulers(value: Plain, name: string): Readonly<Record<string, string>> | undefined {
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  for (const [service, scheduler] of Object.entries(value)) {
    if (!/^[^/]+\/[^/]+$/.test(service)) throw invalid(`${name}: ${JSON.stringify(service)} is no Service`, "write namespace/name");
    if (scheduler === "") throw invalid(`${name}: ${service} has no scheduler`, "leave it out, or name one, e.g. lc");
    if (typeof scheduler !== "string" || !SCHEDULER.test(scheduler))
      throw invalid(`${name}: ${service} must be the name of a scheduler`, SCHEDULER_HINT);
  }
  return value as Readonly<Record<string, string>>;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001 };

function secondsOption(name: string, otherwise: number): OptionOf<number> {
  return { name, kind: "any", otherwise, must: "a duration", hint: "write seconds, or e.g. 15m0s", read: readSeconds };
}

function readSeconds(value: Plain): number | undefined {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  const parts = typeof value === "string" ? [...value.matchAll(/(\d+(?:\.\d+)?)(ms|[hms])/g)] : [];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== value) return undefined;
  return Math.floor(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_SECONDS[unit ?? ""] ?? 0), 0));
}

function invalid(message: string, hint: string): ProxyError {
  return new ProxyError("invalid_object", message, { hint });
}

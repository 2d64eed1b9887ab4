import type { IPFamily } from "@turnout/core";
import { RANGES } from "@turnout/lab";

/** The families of a dual-stack cluster in their order. */
export function familiesOf(primary: IPFamily): readonly IPFamily[] {
  return primary === "IPv4" ? ["IPv4", "IPv6"] : ["IPv6", "IPv4"];
}

/** Ranges as a comma-separated flag has them. */
export function rangesFlag(what: "pods" | "services", primary: IPFamily): string {
  return familiesOf(primary)
    .map((family) => RANGES[what][family])
    .join(",");
}

/** Cluster IPs that are given before there is anything: the API server's own, and CoreDNS's. */
export const FIXED_IPS: Readonly<Record<"api" | "dns", Readonly<Record<IPFamily, string>>>> = {
  api: { IPv4: "10.96.0.1", IPv6: "fd00:96::1" },
  dns: { IPv4: "10.96.0.10", IPv6: "fd00:96::a" },
};

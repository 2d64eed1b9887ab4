import { isEqual, parseCIDR, type BackendModule, type Plain } from "@turnout/core";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import { flagFor } from "./config-flags.ts";
import type { ConfigPath, GivenValues } from "./config-values.ts";
import type { LoadedConfig } from "./loaded-config.ts";

/** kube-proxy's configuration has a section for each of its modes, of the same name but for these. */
const PREFIX_OF: Readonly<Record<string, string>> = { kernelspace: "winkernel." };
/** Sections that belong to a mode. */
const SECTION = /^(?:iptables|ipvs|nftables|winkernel)\./;
/** Fields of a section that are the node's settings; its others go to the backend as options. */
const NOT_OPTIONS: ReadonlySet<string> = new Set(["masqueradeBit", "masqueradeAll", "syncPeriod", "minSyncPeriod"]);
const LOCALHOST = "127.0.0.0/8";

/** Which sections count. */
export interface CountedSections {
  readonly masquerade: "iptables" | "nftables";
  readonly periods: "iptables" | "ipvs" | "nftables";
  /** Tells whether a field of a mode's section has an effect. */
  readonly has: (path: ConfigPath) => boolean;
}

/** Say which sections count for a backend, by kube-proxy's word for its mode; of one that nothing names iptables' counts. Pure. */
export function countedSections(proxyMode: string, isUnnamed: boolean): CountedSections {
  const isNft = proxyMode === "nftables" && !isUnnamed;
  const masquerade = isNft ? "nftables" : "iptables";
  const periods = isNft ? "nftables" : proxyMode === "ipvs" && !isUnnamed ? "ipvs" : "iptables";
  const settings: ReadonlySet<string> = new Set([
    `${masquerade}.masqueradeBit`,
    `${masquerade}.masqueradeAll`,
    `${periods}.syncPeriod`,
    `${periods}.minSyncPeriod`,
    ...(isUnnamed ? ["iptables.localhostNodePorts"] : []),
  ]);
  return { masquerade, periods, has: (path) => settings.has(path) || optionName(path, proxyMode) !== undefined };
}

/** The name of the backend's option that a field of its mode's section gives; undefined: it gives none. */
function optionName(path: string, proxyMode: string): string | undefined {
  const prefix = PREFIX_OF[proxyMode] ?? `${proxyMode}.`;
  const name = path.slice(prefix.length);
  return path.startsWith(prefix) && !NOT_OPTIONS.has(name) ? name : undefined;
}

/** The explicit fields of the mode's own section as the file writes them, e.g. `ipvs.tcpTimeout` → `tcpTimeout`: `15m0s`. */
export function sectionOptions(given: GivenValues, proxyMode: string): Readonly<Record<string, Plain>> {
  const entries = Object.entries(given).flatMap(([path, value]) => {
    const name = optionName(path, proxyMode);
    return name === undefined ? [] : [[name, shown(path as ConfigPath, value)] as const];
  });
  return Object.fromEntries(entries);
}

/**
 * Tell whether a value asks for something.
 *
 * Edges: kubeadm writes out every field: "", 0 and false ask for nothing, and neither does what is so anyhow.
 */
export function asksFor(path: ConfigPath, value: unknown): boolean {
  if (isEqual(value, FIELDS[path].fallback)) return false;
  return typeof value === "object" ? Object.keys(value ?? {}).length > 0 : Boolean(value);
}

/** Warn of settings for a mode that was not chosen, each with its value. */
export function otherMode(
  { mode, fromFile, fromFlags, input }: LoadedConfig,
  { name, proxyMode = name, nodePortAddressesDefault }: Pick<BackendModule, "name" | "proxyMode" | "nodePortAddressesDefault">,
  counted: CountedSections,
  isUnnamed: boolean,
): readonly string[] {
  const given: GivenValues = { ...fromFile, ...fromFlags };
  const named = PATHS.filter(
    (path) => SECTION.test(path) && !counted.has(path) && differs(path, given[path]) && !isTwin(path, fromFlags, counted),
  ).map((path) => `${(path in fromFlags ? flagFor(path) : undefined) ?? path} (${JSON.stringify(shown(path, given[path]))})`);
  const answersElsewhere = mode === "" && !isUnnamed && input.file !== undefined && (given.nodePortAddresses ?? []).length === 0;
  const { masquerade, periods } = counted;
  return [
    ...(mode === "" || mode === proxyMode
      ? []
      : [
          `the configuration is for mode ${mode}, but the backend is ${name}: masquerade settings are those of section ${masquerade}, sync periods those of ${periods}`,
        ]),
    ...(named.length === 0 ? [] : [`settings for another mode have no effect with backend ${name}: ${[...new Set(named)].join(", ")}`]),
    ...(answersElsewhere && nodePortAddressesDefault !== undefined
      ? [
          `with mode "" kube-proxy answers node ports on every address of the node, and backend ${name} on ${nodePortAddressesDefault.join(", ")}: set nodePortAddresses, or start turnout without --backend`,
        ]
      : []),
  ];
}

/** A switch may be off where it is on by default. */
function differs(path: ConfigPath, value: unknown): boolean {
  return asksFor(path, value) || (value === false && FIELDS[path].fallback === true);
}

/** One flag sets the same field of two sections, and one of them counts. */
function isTwin(path: ConfigPath, fromFlags: GivenValues, counted: CountedSections): boolean {
  const flag = flagFor(path);
  return path in fromFlags && PATHS.some((other) => other in fromFlags && counted.has(other) && flagFor(other) === flag);
}

/**
 * The addresses that answer node ports in kube-proxy's mode iptables: every one where none is named, and 127.0.0.0/8 by name among all of IPv4.
 * Pure.
 *
 * Edges: a family without a CIDR of its own is match-all.
 */
export function iptablesNodePortAddresses(given: readonly string[], hasLocalhost: boolean): readonly string[] {
  if (given.length === 0) return ["0.0.0.0/0", "::/0", ...(hasLocalhost ? [LOCALHOST] : [])];
  const ofIPv4 = given.filter((entry) => parseCIDR(entry)?.family !== "IPv6");
  const isAll = ofIPv4.length === 0 || ofIPv4.some((entry) => entry === "all" || parseCIDR(entry)?.prefixLength === 0);
  if (!isAll || !hasLocalhost) return given;
  return [...given, ...(ofIPv4.length === 0 ? ["0.0.0.0/0"] : []), LOCALHOST];
}

function shown(path: ConfigPath, value: unknown): Plain {
  return (FIELDS[path] as Field<unknown>).kind.show(value);
}

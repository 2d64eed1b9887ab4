import { ProxyError } from "@turnout/core";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import type { ConfigPath, ConfigValues, GivenValues } from "./config-values.ts";
import { isGateOn } from "./gates/feature-gates.ts";

/** Whose modes read a section, or a part of it; what is not named counts in every mode. Upstream nftables reads its own masquerade bit, and checks iptables' one all the same. */
const COUNTS_IN: Readonly<Record<string, (proxyMode: string) => boolean>> = {
  ipvs: (mode) => mode === "ipvs",
  nftables: (mode) => mode === "nftables",
  "iptables.syncPeriod": (mode) => mode !== "ipvs" && mode !== "nftables",
  "iptables.minSyncPeriod": (mode) => mode !== "ipvs" && mode !== "nftables",
};

/**
 * Check what was said, as far as it counts: kube-proxy does not look at the sections of other modes.
 *
 * Shape: `placeOf` says where a value was said.
 * Edges: without a mode only what counts in every mode is looked at.
 * @throws {ProxyError} `invalid_object` naming the place.
 * @source kube-proxy pkg/proxy/apis/config/validation
 */
export function checkValues(given: GivenValues, proxyMode: string | undefined, placeOf: (path: ConfigPath) => string): void {
  for (const path of PATHS) {
    const value: unknown = given[path];
    if (value === undefined || !counts(path, proxyMode)) continue;
    const field = FIELDS[path] as Field<unknown>;
    const wrong = field.check?.(value);
    if (wrong === undefined) continue;
    // A list's or a map's check says itself which part of it is wrong.
    const shown = typeof value === "object" ? "" : `${shownText(field, value)} `;
    throw new ProxyError("invalid_object", `${shown}${wrong}`, { object: placeOf(path) });
  }
  checkLogging({ ...given }, placeOf);
}

function counts(path: ConfigPath, proxyMode: string | undefined): boolean {
  const rule = COUNTS_IN[path] ?? COUNTS_IN[path.split(".")[0] ?? ""];
  return rule === undefined || (proxyMode !== undefined && rule(proxyMode));
}

function shownText(field: Field<unknown>, value: unknown): string {
  const shown = field.kind.show(value);
  return typeof value === "number" && typeof shown === "string" ? shown : JSON.stringify(shown);
}

const ALPHA_OPTIONS: readonly ConfigPath[] = [
  "logging.options.text.splitStream",
  "logging.options.text.infoBufferSize",
  "logging.options.json.splitStream",
  "logging.options.json.infoBufferSize",
];

/** @source k8s.io/component-base logs/api/v1/options.go Validate */
function checkLogging(given: Partial<ConfigValues>, placeOf: (path: ConfigPath) => string): void {
  const gates = given.featureGates ?? {};
  const refuse = (path: ConfigPath, what: string): never => {
    throw new ProxyError("invalid_object", what, { object: placeOf(path) });
  };
  if (given["logging.format"] === "json") {
    if (!isGateOn("LoggingBetaOptions", gates)) refuse("logging.format", "json needs the feature gate LoggingBetaOptions");
    if ((given["logging.vmodule"] ?? []).length > 0) refuse("logging.vmodule", "it needs logging format text");
  }
  for (const path of ALPHA_OPTIONS) {
    const value = given[path];
    const isSet = typeof value === "string" ? Number.parseFloat(value) !== 0 : value === true;
    if (isSet && !isGateOn("LoggingAlphaOptions", gates)) refuse(path, "it needs the feature gate LoggingAlphaOptions");
  }
}

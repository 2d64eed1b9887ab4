import { ProxyError, type Log } from "@turnout/core";
import { ALLOWED_ADDRESS_FLAGS, STRICT_SETTINGS } from "./allowed-addresses.ts";
import type { RunConfig } from "./run-config.ts";

const EXTERNAL_IPS_GATE = "AllowServiceExternalIPs";
const LIMITS_ELSEWHERE = "the process that reads Services limits their addresses";
const LIMITS_HINT = "with --source api:, give it to the node-state server (turnout serve)";

/**
 * Make sure that no one takes a node-state server's rows for limited here. A gate of kube-proxy's in a file is only warned of.
 * @throws {ProxyError} `invalid_object` where flags, or a section of ours in a file, limit them.
 */
export function refuseAllowOptions(
  { allowedAddresses: allowed, features, configFile }: Pick<RunConfig, "allowedAddresses" | "features" | "configFile">,
  log: Log,
): void {
  const isByGate = allowed.externalIPs?.length === 0 && features.some(({ name, enabled }) => name === EXTERNAL_IPS_GATE && !enabled);
  if (isByGate) log.warn(`the feature gate ${EXTERNAL_IPS_GATE}=false has no effect here: ${LIMITS_ELSEWHERE}`, { hint: LIMITS_HINT });
  const others = ["loadBalancerIPs", ...STRICT_SETTINGS] as const;
  const kinds = isByGate ? others : (["externalIPs", ...others] as const);
  const given = kinds.filter((kind) => allowed[kind] !== undefined).map((kind) => ALLOWED_ADDRESS_FLAGS[kind]);
  if (given.length === 0) return;
  const file =
    STRICT_SETTINGS.some((name) => given.includes(ALLOWED_ADDRESS_FLAGS[name])) && configFile !== undefined
      ? ` (or ${configFile.path})`
      : "";
  throw new ProxyError("invalid_object", LIMITS_ELSEWHERE, {
    object: `${given.map((name) => `--${name}`).join(", ")}${file}`,
    hint: LIMITS_HINT,
  });
}

import { canonicalIP } from "@turnout/core";
import { parseBindAddress, type BindAddress } from "./bind-address.ts";
import { INTEGER } from "./config-kinds.ts";
import type { ConfigValues } from "./config-values.ts";
import { invalid, textFlag, type LoadedConfig } from "./loaded-config.ts";

/** Where the two servers listen; undefined: nowhere. */
export interface ServerAddresses {
  readonly healthzBindAddress: BindAddress | undefined;
  readonly metricsBindAddress: BindAddress | undefined;
}

/** Say where the two servers listen. @throws {ProxyError} `invalid_object` for a port that can't be. */
export function serverAddresses(loaded: LoadedConfig, values: ConfigValues): ServerAddresses {
  const isV6 = canonicalIP(values.bindAddress)?.family === "IPv6";
  const healthz = { ip: isV6 ? "::" : "0.0.0.0", port: 10_256 };
  const metrics = { ip: isV6 ? "::1" : "127.0.0.1", port: 10_249 };
  return {
    healthzBindAddress: serverAddress(loaded, "healthzBindAddress", healthz, "healthz-port"),
    metricsBindAddress: serverAddress(loaded, "metricsBindAddress", metrics, "metrics-port"),
  };
}

/** The address of one server: "" from a flag turns it off, from a file it means the default (kube-proxy's defaulting replaces it). */
function serverAddress(
  loaded: LoadedConfig,
  path: "healthzBindAddress" | "metricsBindAddress",
  fallback: BindAddress,
  portFlag: string,
): BindAddress | undefined {
  const text = loaded.fromFlags[path] ?? loaded.fromFile[path];
  if (text === "") return undefined;
  const portText = loaded.input.file === undefined ? textFlag(loaded.input.flags, portFlag) : undefined;
  if (portText !== undefined && text === undefined) {
    const port = INTEGER.fromFlag(portText);
    if (port < 0 || port > 65_535) throw invalid(`--${portFlag}`, `${portText} must be 0 to 65535`);
    return port === 0 ? undefined : { ...fallback, port };
  }
  return text === undefined ? fallback : parseBindAddress(text, fallback.port);
}

import type { Plain } from "@turnout/core";
import { bindAddressText } from "./bind-address.ts";
import { FIELDS, MODES, PATHS, type Field } from "./config-fields.ts";
import type { ConfigValues } from "./config-values.ts";
import { API_VERSION, KIND } from "./kube-proxy-config.ts";
import type { ServerAddresses } from "./server-addresses.ts";

/** What /configz calls it. */
export const CONFIGZ = "kubeproxy.config.k8s.io";
/** What an empty detectLocalMode means. @source kube-proxy cmd/kube-proxy/app/server_linux.go platformApplyDefaults */
const DETECT_LOCAL_DEFAULT = "ClusterCIDR";

/**
 * The whole configuration as /configz shows it.
 *
 * Edges: what is empty and is decided at the start is told as it was decided, as kube-proxy does: how pods are recognised, and the mode, where
 * kube-proxy has a word for it.
 */
export function configz(values: ConfigValues, servers: ServerAddresses, proxyMode: string): Readonly<Record<string, Tree>> {
  const { healthzBindAddress: healthz, metricsBindAddress: metrics } = servers;
  const said: ConfigValues = {
    ...values,
    mode: values.mode === "" && MODES.includes(proxyMode) ? proxyMode : values.mode,
    detectLocalMode: values.detectLocalMode || DETECT_LOCAL_DEFAULT,
    healthzBindAddress: healthz === undefined ? "" : bindAddressText(healthz),
    metricsBindAddress: metrics === undefined ? "" : bindAddressText(metrics),
  };
  const root: Tree = { apiVersion: API_VERSION, kind: KIND };
  for (const path of PATHS) {
    const names = path.split(".");
    const last = names.pop() ?? "";
    let map = root;
    for (const name of names) map = (map[name] ??= {}) as Tree;
    map[last] = (FIELDS[path] as Field<unknown>).kind.show(said[path]);
  }
  return { [CONFIGZ]: root };
}

/** An object of objects that is being built. */
interface Tree {
  [name: string]: Plain;
}

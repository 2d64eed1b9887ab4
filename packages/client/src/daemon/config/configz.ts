import type { Plain } from "@turnout/core";
import { bindAddressText } from "./bind-address.ts";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import type { ConfigValues } from "./config-values.ts";
import { API_VERSION, KIND } from "./kube-proxy-config.ts";
import type { ServerAddresses } from "./server-addresses.ts";

/** What /configz calls it. */
export const CONFIGZ = "kubeproxy.config.k8s.io";
/** The whole configuration as /configz shows it. */
export function configz(values: ConfigValues, servers: ServerAddresses): Readonly<Record<string, Tree>> {
  const { healthzBindAddress: healthz, metricsBindAddress: metrics } = servers;
  const said: ConfigValues = {
    ...values,
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

import type { LoadedConfig, ProxyStatus, RunConfig } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import type { Cause, NodeSettings } from "@turnout/core";

/** What was said to this command, and by whom. */
export interface GivenFlags {
  readonly loaded: Pick<LoadedConfig, "fromFile" | "fromFlags" | "input">;
  readonly config: RunConfig;
  /** The backend's name. */
  readonly backend: string;
}

/** A configuration to answer with. */
export interface AgreedFlags {
  readonly config: RunConfig;
  readonly causes: readonly Cause[];
}

/** Which fields of kube-proxy's configuration each setting is made of, and what people call it. */
const SETTINGS: Readonly<Record<keyof NodeSettings, { readonly paths: RegExp; readonly flag: string }>> = {
  masqueradeAll: { paths: /\.masqueradeAll$/, flag: "--masquerade-all" },
  masqueradeBit: { paths: /\.masqueradeBit$/, flag: "--iptables-masquerade-bit" },
  detectLocal: { paths: /^(?:detectLocal|clusterCIDR)/, flag: "--cluster-cidr or --detect-local-mode" },
  nodePortAddresses: { paths: /^nodePortAddresses$/, flag: "--nodeport-addresses" },
};

/**
 * Take from the proxy that runs on this host what nobody said to the command, and name what it was told otherwise. Pure.
 *
 * Edges: the kernel's rules are that proxy's, so with other flags they seem wrong.
 */
export function withProxyFlags({ loaded, config, backend }: GivenFlags, proxy: ProxyStatus): AgreedFlags {
  const given = Object.keys({ ...loaded.fromFile, ...loaded.fromFlags });
  const differences: string[] = [];
  if (backend !== proxy.backend) differences.push(`backend ${proxy.backend}, not ${backend}`);
  const isNamed = "node-name" in loaded.input.flags || given.includes("hostnameOverride");
  if (isNamed && config.nodeName !== proxy.node) differences.push(`--node-name ${proxy.node}, not ${config.nodeName}`);
  const settings: Record<string, unknown> = { ...config.settings };
  for (const [name, { paths, flag }] of Object.entries(SETTINGS) as [keyof NodeSettings, (typeof SETTINGS)[keyof NodeSettings]][]) {
    const theirs = proxy.settings?.[name];
    if (proxy.settings === undefined) continue;
    if (!given.some((path) => paths.test(path))) settings[name] = theirs;
    else if (JSON.stringify(theirs) !== JSON.stringify(config.settings[name]))
      differences.push(`${flag}: ${plainText(theirs)}, not ${plainText(config.settings[name])}`);
  }
  return {
    config: { ...config, nodeName: isNamed ? config.nodeName : proxy.node, settings: settings as unknown as NodeSettings },
    causes: differences.length === 0 ? [] : [otherFlags(differences)],
  };
}

/**
 * Ask for a source where nobody named one and the proxy that runs here reads another one than would be taken.
 * @throws {ProxyError} `invalid_object` then.
 */
export function demandSource(taken: string, proxys: string | undefined): void {
  if (proxys === undefined || proxys === taken) return;
  throw new ProxyError("invalid_object", `without --source Services are read from ${taken}, and the proxy here reads ${proxys}`, {
    object: "--source",
    hint: `add --source ${proxys}, or another one; without --node-name, --config and --backend the proxy itself is asked`,
  });
}

/** Values without the marks of JSON. */
function plainText(value: NodeSettings[keyof NodeSettings]): string {
  if (value === undefined) return "the default";
  return typeof value === "object" ? Object.values(value).flat().join(" ") || "none" : String(value);
}

function otherFlags(differences: readonly string[]): Cause {
  return {
    id: "other_flags",
    isSure: false,
    says: `the proxy that runs here was told otherwise than this command (${differences.join("; ")}), and the kernel's rules are that proxy's. So the steps may be wrong`,
    show: ["turnout status -o json"],
    mend: "leave these flags out, and the proxy's are taken; or ask the proxy itself: leave out --source, --backend, --config and --node-name",
  };
}

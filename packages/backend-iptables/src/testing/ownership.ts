/** Chains of kube-proxy's with names of their own. */
const STATIC_CHAINS: ReadonlySet<string> = new Set([
  "KUBE-SERVICES",
  "KUBE-EXTERNAL-SERVICES",
  "KUBE-NODEPORTS",
  "KUBE-POSTROUTING",
  "KUBE-MARK-MASQ",
  "KUBE-FORWARD",
  "KUBE-PROXY-FIREWALL",
  "KUBE-PROXY-CANARY",
]);
const DYNAMIC_CHAIN = /^KUBE-(?:SVC|SVL|EXT|FW|SEP)-/;

/** Tell whether a chain is the backend's, by its name; KUBE-FIREWALL is kubelet's, whoever made it. */
export function isOwnChain(name: string): boolean {
  return STATIC_CHAINS.has(name) || DYNAMIC_CHAIN.test(name);
}

import { EXTERNAL_BIT } from "../host/external-mark.ts";

/** What kubelet writes, and also kube-proxy: packets to loopback that came in from outside. */
export const MARTIAN_RULE: string =
  '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

/**
 * What others have written before the backend comes, as inputs of `iptables-restore --noflush`, by family.
 *
 * Shape: a CNI's chains, somebody's who sets a mark bit of their own, chains with names much like kube-proxy's; nothing of it stops a packet
 * of a test.
 */
export const EXTERNAL_RULES: Readonly<Record<"IPv4" | "IPv6", string>> = { IPv4: externalRules("IPv4"), IPv6: externalRules("IPv6") };

function externalRules(family: "IPv4" | "IPv6"): string {
  const [address, pods] = family === "IPv4" ? ["192.0.2.1", "192.0.2.0/24"] : ["2001:db8::1", "2001:db8::/64"];
  return `*mangle
:SOMEBODY-MARK - [0:0]
-A PREROUTING -j SOMEBODY-MARK
-A OUTPUT -j SOMEBODY-MARK
-A SOMEBODY-MARK -m comment --comment "not ours" -j MARK --or-mark ${EXTERNAL_BIT}
COMMIT
*nat
:CNI-HOSTPORT - [0:0]
:CNI-OUT - [0:0]
:KUBE-OF-SOMEBODY - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT
-A CNI-HOSTPORT -p tcp -m tcp --dport 4242 -j DNAT --to-destination ${family === "IPv4" ? address : `[${address}]`}:42
-A POSTROUTING -s ${pods} -m comment --comment "name: \\"cni\\"" -j CNI-OUT
-A CNI-OUT -d ${pods} -j ACCEPT
-A CNI-OUT -j MASQUERADE
-A KUBE-OF-SOMEBODY -j MARK --or-mark ${EXTERNAL_BIT}
COMMIT
*filter
:SOMEBODY - [0:0]
-A INPUT -s ${address} -j DROP
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A FORWARD -j SOMEBODY
-A SOMEBODY ! -i docker0 -o docker0 -d ${address} -j DROP
-A SOMEBODY -j RETURN
COMMIT
`;
}

/** What kubelet has written, by family. */
export const KUBELET_RULES: Readonly<Record<"IPv4" | "IPv6", string>> = { IPv4: kubeletRules("IPv4"), IPv6: kubeletRules("IPv6") };

function kubeletRules(family: "IPv4" | "IPv6"): string {
  return `*mangle
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*nat
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*filter
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
${family === "IPv4" ? `-A KUBE-FIREWALL ${MARTIAN_RULE}\n` : ""}COMMIT
`;
}

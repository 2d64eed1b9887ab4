import { describe, expect, it } from "vitest";
import { parseSaved } from "./observe.ts";

/** Ids of what is found in one table. */
function found(table: "filter" | "nat", lines: readonly string[]): readonly string[] {
  return [...parseSaved({ filter: "", nat: "", mangle: "", [table]: lines.join("\n") }, "IPv4", true).keys()];
}

describe("parseSaved", () => {
  it("takes for ours the jumps of a service proxy of any version, and not what others send to our chains", () => {
    const theirs = [
      ":OUTPUT ACCEPT [0:0]",
      "-A OUTPUT -j KUBE-SERVICES",
      '-A OUTPUT -m comment --comment "by hand" -j KUBE-SERVICES',
      "-A CNI-X -j KUBE-MARK-MASQ",
    ];
    expect(found("nat", theirs)).toEqual([]);
    expect(
      found("filter", [
        ":INPUT ACCEPT [0:0]",
        '-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      ]),
    ).toEqual(["jumps filter INPUT"]);
  });

  it("leaves kubelet's chains alone, but for the guard, of which only the chain, its rule and the jumps to it count", () => {
    const kubelets = [":KUBE-MARK-DROP - [0:0]", ":KUBE-KUBELET-CANARY - [0:0]", "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000"];
    expect(found("nat", kubelets)).toEqual([]);
    const guard = [
      ":INPUT ACCEPT [0:0]",
      ":KUBE-FIREWALL - [0:0]",
      "-A INPUT -j KUBE-FIREWALL",
      "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP",
    ];
    expect(found("filter", guard)).toEqual(["guard filter INPUT -j KUBE-FIREWALL", "guard filter KUBE-FIREWALL"]);
  });
});

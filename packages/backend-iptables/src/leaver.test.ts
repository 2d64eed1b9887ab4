import { withoutOtherModes } from "@turnout/host/iptables/text";
import { describe, expect, it } from "vitest";
import { MODE } from "./leaver.ts";
import { parseSaved } from "./observe.ts";

describe("what the iptables backend leaves", () => {
  it("is without the jumps of an ipvs mode that serves now, and with them where iptables serves", () => {
    const filter = [
      ":FORWARD ACCEPT [0:0]",
      '-A FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL',
      '-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
    ].join("\n");
    const left = (rule: string): readonly unknown[] => {
      const nat = [":KUBE-SERVICES - [0:0]", `-A KUBE-SERVICES ${rule}`].join("\n");
      const objects = withoutOtherModes([...parseSaved({ filter, nat, mangle: "" }, "IPv4", false).values()], MODE);
      return objects.flatMap(({ kind, value }) => (kind === "jumps" ? String(value).split("\n") : []));
    };
    expect(left("-m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT")).toEqual([expect.stringContaining("load balancer firewall")]);
    expect(left("-d 10.96.0.1/32 -j KUBE-SVC-A")).toHaveLength(2);
  });
});

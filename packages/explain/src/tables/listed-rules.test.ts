import { describe, expect, it } from "vitest";
import { readListing } from "@turnout/host/iptables";
import { jumpOf } from "@turnout/host/iptables/text";
import { virtualServersIn } from "../readings/survey.ts";

describe("what the tools print", () => {
  it("iptables-save of a table, without the rules of a service proxy's own chains", () => {
    const text = `# Generated
*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:FORWARD DROP [3:180]
-A PREROUTING -j KUBE-SERVICES
[1:60] -A FORWARD
-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SEP-AAAAAAAAAAAAAAAA
COMMIT
`;
    expect(Object.fromEntries(readListing(text, (chain) => chain !== "KUBE-SERVICES"))).toEqual({
      PREROUTING: { policy: "ACCEPT", rules: ["-j KUBE-SERVICES"] },
      "KUBE-SERVICES": { policy: undefined, rules: [] },
      FORWARD: { policy: "DROP", rules: [""] },
    });
  });

  it("iptables -S of chains", () => {
    const text = "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n-A FORWARD\n-N DOCKER-USER\n";
    expect(Object.fromEntries(readListing(text))).toEqual({
      FORWARD: { policy: "DROP", rules: ["-j DOCKER-USER", ""] },
      "DOCKER-USER": { policy: undefined, rules: [] },
    });
  });

  it.each([
    ["-d 10.0.0.1/32 -j ACCEPT", "ACCEPT"],
    ["-g OTHER", "OTHER"],
    ['-m comment --comment "a -j b" -j MINE', "MINE"],
    ["-p tcp", undefined],
  ])("a rule of iptables leads on: %s", (rule, target) => {
    expect(jumpOf(rule)).toBe(target);
  });

  it("/proc/net/ip_vs", () => {
    const head = "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port\n";
    expect(virtualServersIn(undefined)).toBeUndefined();
    expect(virtualServersIn(head)).toBeUndefined();
    expect(virtualServersIn(`${head}TCP  0A600001:01BB rr\n  -> 0A000001:1F90 Masq 1 0 0\nUDP  0A60000A:0035 rr\n`)).toBe(2);
  });
});

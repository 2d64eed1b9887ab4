import { expect, it } from "vitest";
import { jumpDeletions } from "./jumps.ts";

it("jumps of others to chains that are left are named with what deletes them", () => {
  const saved = {
    filter: "*filter\n:KUBE-SERVICES - [0:0]\n-A FORWARD -j KUBE-SERVICES\nCOMMIT\n",
    nat: `*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
[7:420] -A PREROUTING -m comment --comment "a -j KUBE-SERVICES" -j OTHER
-A PREROUTING -p tcp -m comment --comment "mine" -j KUBE-SERVICES
-A KUBE-SERVICES -g KUBE-NODEPORTS
COMMIT
`,
  };
  const chains = ["KUBE-SERVICES", "KUBE-NODEPORTS"].map((chain) => ({ table: "nat", chain }) as const);
  expect(jumpDeletions(saved, chains, "iptables-nft")).toEqual([
    'iptables-nft -t nat -D PREROUTING -p tcp -m comment --comment "mine" -j KUBE-SERVICES',
  ]);
});

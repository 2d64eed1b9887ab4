import { expect, test } from "vitest";
import { describeObject } from "./describe.ts";
import type { IptablesObject } from "./objects.ts";

const chain = (value: string): IptablesObject => ({ kind: "chain", key: "nat KUBE-SVC-X", value });

test("a chain that was emptied is told with what it should hold, in full", () => {
  const rule = `-m comment --comment "shop/cart:http -> 10.1.1.5:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-A`;
  expect(describeObject(chain(`${rule}\n-j KUBE-SEP-B`), "IPv6", chain(""))).toEqual({
    what: "chain KUBE-SVC-X of table nat",
    show: "ip6tables -t nat -S KUBE-SVC-X",
    differs: `chain KUBE-SVC-X of table nat is empty; it should have 2 rules, the first: ${rule}`,
  });
  expect(describeObject(chain(rule), "IPv4")).not.toHaveProperty("differs");
});

test("jumps are told with the chains that they lead to", () => {
  const value =
    '-m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD\n-m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
  expect(describeObject({ kind: "jumps", key: "filter FORWARD", value }, "IPv6")).toEqual({
    what: "the jumps of chain FORWARD of table filter to KUBE-FORWARD, KUBE-SERVICES",
    show: "ip6tables -t filter -S FORWARD",
  });
});

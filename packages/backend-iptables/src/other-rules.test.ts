import { expect, it } from "vitest";
import { otherRulesThan } from "./other-rules.ts";
import type { IptablesObject } from "./objects.ts";

const rule = (key: string): IptablesObject => ({ kind: "rule", key, value: 1 });
const OWN = rule(
  'nat KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "shop/cart:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-A',
);
const NODE_PORT = rule('nat KUBE-NODEPORTS -p tcp -m comment --comment "shop/cart:http" -m tcp --dport 30080 -j KUBE-EXT-A');
const ENDPOINT: IptablesObject = {
  kind: "chain",
  key: "nat KUBE-SEP-A",
  value: "-s 10.1.0.5/32 -j KUBE-MARK-MASQ\n-p tcp -m tcp -j DNAT --to-destination 10.1.0.5:8080",
};
const isOther = otherRulesThan([OWN, NODE_PORT, ENDPOINT], "IPv4");

it.each([
  "nat KUBE-SERVICES -j RETURN",
  "nat KUBE-SERVICES -d 10.96.0.1/32 -j RETURN",
  "nat KUBE-SERVICES -d 10.96.0.0/16 -p tcp -j RETURN",
  'nat KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "old/cart -d 10.96.0.9/32" -m tcp --dport 80 -j KUBE-SVC-B',
  "nat KUBE-SERVICES ! -d 10.96.0.9/32 -p tcp -j RETURN",
  "nat KUBE-SERVICES -p tcp -m tcp --dport 79:81 -j RETURN",
  'nat KUBE-NODEPORTS -p tcp -m comment --comment "old/cart" -m tcp --dport 30080 -j KUBE-EXT-B',
  "filter KUBE-SERVICES -d 10.1.0.5/32 -p tcp -m tcp --dport 8080 -j DROP",
  "filter KUBE-SERVICES -p tcp -m tcp --dport 8080 -j DROP",
])("packets for the asked Service meet %s", (key) => {
  expect(isOther(rule(key))).toBe(true);
});

it.each([
  'nat KUBE-SERVICES -d 10.96.0.9/32 -p tcp -m comment --comment "shop/other cluster IP" -m tcp --dport 80 -j KUBE-SVC-C',
  'nat KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "shop/cart:https cluster IP" -m tcp --dport 443 -j KUBE-SVC-D',
  'nat KUBE-SERVICES -d 10.96.0.1/32 -p udp -m comment --comment "shop/cart:dns cluster IP" -m udp --dport 80 -j KUBE-SVC-E',
  'nat KUBE-SERVICES -d 10.96.0.9/32 -p tcp -m comment --comment "a Service of the node port" -m tcp --dport 30080 -j KUBE-SVC-F',
  'nat KUBE-NODEPORTS -p tcp -m comment --comment "a node port of the Service port" -m tcp --dport 80 -j KUBE-EXT-G',
  "nat KUBE-SERVICES -d 10.1.0.5/32 -p tcp -m tcp --dport 8080 -j RETURN",
])("packets for another Service meet %s", (key) => {
  expect(isOther(rule(key))).toBe(false);
});

it("the asked objects themselves, and what is no rule, are not besides them", () => {
  expect([OWN, NODE_PORT, ENDPOINT].map((object) => isOther(object))).toEqual([false, false, false]);
});

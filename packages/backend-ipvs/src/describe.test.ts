import { expect, test } from "vitest";
import { describeObject } from "./describe.ts";
import type { IpvsObject } from "./objects.ts";

const chain = (value: string): IpvsObject => ({ kind: "chain", key: "nat KUBE-MARK-MASQ", value });

test("a chain that was emptied is told with what it should hold, in full", () => {
  expect(describeObject(chain("-j MARK --set-xmark 0x4000/0x4000"), chain(""))).toEqual({
    what: "rules of chain KUBE-MARK-MASQ of the iptables table nat",
    show: "iptables -t nat -S KUBE-MARK-MASQ",
    differs: "chain KUBE-MARK-MASQ of the iptables table nat is empty; it should have the rule -j MARK --set-xmark 0x4000/0x4000",
  });
  expect(describeObject(chain(""))).not.toHaveProperty("differs");
});

import { describe, expect, test } from "vitest";
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

describe("a chain of other settings", () => {
  const to = (target: string, comment = "shop/cart:http cluster IP"): string =>
    `-d 10.96.0.1/32 -p tcp -m comment --comment "${comment}" -m tcp --dport 80 -j ${target}`;
  const pick = '-m comment --comment "shop/cart:http -> 10.1.1.5:8080" -j KUBE-SEP-A';
  const marked = `! -s 10.1.0.0/16 ${to("KUBE-MARK-MASQ")}`;
  const pods = '-s 10.1.0.0/16 -m comment --comment "pod traffic for shop/cart:http external destinations" -j KUBE-SVC-A';
  const tail = (destination: string): string =>
    `${destination} -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -j KUBE-NODEPORTS`;
  const isOther = (wanted: readonly string[], held: readonly string[]): boolean =>
    describeObject(chain(wanted.join("\n")), "IPv4", chain(held.join("\n"))).isOfOtherSettings === true;

  test.each<readonly [name: string, wanted: readonly string[], held: readonly string[], isOther: boolean]>([
    ["pods are told", [pick], [marked, pick], true],
    ["pods are told by another range", [`! -s 10.2.0.0/16 ${to("KUBE-MARK-MASQ")}`, pick], [marked, pick], true],
    ["everything is masqueraded", [marked, pick], [to("KUBE-MARK-MASQ"), pick], true],
    ["pods' traffic is not told from others'", ["-j KUBE-SVC-A"], [pods, "-j KUBE-SVC-A"], true],
    ["endpoints have no comments", [pick], ["-j KUBE-SEP-A"], true],
    ["the mark bit", ["-j MARK --set-xmark 0x4000/0x4000"], ["-j MARK --set-xmark 0x8000/0x8000"], true],
    ["node ports answer elsewhere", [tail("-d 172.18.0.1/32")], [tail("-m addrtype --dst-type LOCAL")], true],
    ["a rule is gone", [marked, pick], [pick], false],
    ["all are gone", [marked, pick], [], false],
    ["an endpoint is another one", [pick], ["-j KUBE-SEP-B"], false],
    ["a rule too many, beside other settings", [pick], [marked, "-j DROP", pick], false],
    ["the mark bit is masked away", ["-j MARK --set-xmark 0x4000/0x4000"], ["-j MARK --set-xmark 0x4000/0x0"], false],
  ])("%s", (_name, wanted, held, expected) => {
    expect(isOther(wanted, held)).toBe(expected);
  });
});

test("jumps are told with the chains that they lead to", () => {
  const value =
    '-m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD\n-m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
  expect(describeObject({ kind: "jumps", key: "filter FORWARD", value }, "IPv6")).toEqual({
    what: "the jumps of chain FORWARD of table filter to KUBE-FORWARD, KUBE-SERVICES",
    show: "ip6tables -t filter -S FORWARD",
  });
});

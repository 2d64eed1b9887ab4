import { expect, test } from "vitest";
import { MISPLACED } from "./objects.ts";
import { rulesDiffer } from "./rules-differ.ts";

const MASQUERADE = "-s 10.1.0.7/32 -m comment --comment shop/cart:http -j KUBE-MARK-MASQ";
const TRANSLATE = "-p tcp -m comment --comment shop/cart:http -m tcp -j DNAT --to-destination 10.1.0.7:8080";
const BOTH = `${MASQUERADE}\n${TRANSLATE}`;

test.each<readonly [name: string, kind: "chain" | "shared", wanted: string, held: string, says: string]>([
  ["emptied", "chain", BOTH, "", `chain X is empty; it should have 2 rules, the first: ${MASQUERADE}`],
  ["emptied, of one rule", "chain", TRANSLATE, "", `chain X is empty; it should have the rule ${TRANSLATE}`],
  ["without a rule", "chain", BOTH, MASQUERADE, `chain X lacks the rule ${TRANSLATE}`],
  ["with one too many", "chain", TRANSLATE, `-j DROP\n${TRANSLATE}`, "chain X has the rule -j DROP, which nobody wants there"],
  [
    "with another one",
    "chain",
    TRANSLATE,
    "-j DROP",
    `chain X lacks the rule ${TRANSLATE}, and has the rule -j DROP, which nobody wants there`,
  ],
  ["turned round", "chain", BOTH, `${TRANSLATE}\n${MASQUERADE}`, "chain X has its rules in another order, or more than once"],
  // The rules of Services in it are objects of their own.
  ["shared, without its last", "shared", "-j KUBE-NODEPORTS", "", "chain X lacks the rule -j KUBE-NODEPORTS"],
  ["shared, with more behind", "shared", "-j LAST", `${MISPLACED}\n-j LAST`, "chain X has rules behind those that should be its last"],
])("a chain that is %s", (_name, kind, wanted, held, says) => {
  expect(rulesDiffer("chain X", { kind, value: wanted }, { kind, value: held })).toBe(says);
});

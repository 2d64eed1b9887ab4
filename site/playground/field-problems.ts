import { canonicalIP, NODE_PORT_KEYWORDS, parseCIDR } from "@turnout/core";
import { listed } from "./state.ts";
import type { PlaygroundState } from "./state.ts";

/** Fields that hold lists of addresses: with a part of one left out, another rule might decide. */
export type ListField = "pods" | "addresses" | "nodePortAddresses";

interface ListRule {
  readonly isRight: (part: string) => boolean;
  /** What a wrong part is not, and what to write. */
  readonly wanted: string;
}

const isCIDR = (part: string): boolean => parseCIDR(part) !== undefined;

const LISTS: Readonly<Record<ListField, ListRule>> = {
  pods: { isRight: isCIDR, wanted: "is no range of addresses: write CIDRs with commas between them, e.g. 10.1.0.0/16" },
  addresses: {
    isRight: (part) => canonicalIP(part) !== undefined,
    wanted: "is no address: write IP addresses with commas between them, e.g. 192.0.2.7",
  },
  nodePortAddresses: {
    isRight: (part) => NODE_PORT_KEYWORDS.has(part) || isCIDR(part),
    wanted: "is no range of addresses: write primary, localhost, all, or CIDRs with commas between them, e.g. 192.0.2.0/24",
  },
};

/** Say of each list that has a wrong part which one, and what to write. Pure; a list that is right is not in the result. */
export function fieldProblems(state: PlaygroundState): ReadonlyMap<ListField, string> {
  return new Map(
    (Object.keys(LISTS) as ListField[]).flatMap((field) => {
      const { isRight, wanted } = LISTS[field];
      const wrong = listed(state[field]).find((part) => !isRight(part));
      return wrong === undefined ? [] : [[field, `"${wrong}" ${wanted}`] as const];
    }),
  );
}

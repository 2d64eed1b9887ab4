import type { Plain } from "@turnout/core";

/** The whole table with its maps and sets; its value is the layout's version. */
export interface TableObject {
  readonly kind: "table";
  readonly key: "layout";
  readonly value: string;
}

/** A chain. Equality is by `value`, a digest of its rules that also travels in the first rule's comment. */
export interface ChainObject {
  readonly kind: "chain";
  readonly key: string;
  /** `digest/number of rules`; what observe finds in a chain that isn't as we made it differs from any digest. */
  readonly value: string;
  /** Rules as text, without comments; empty for an observed chain. */
  readonly rules: readonly string[];
}

/** Where a destination's packets go, and its endpoints as `address . port`, in index order. */
export interface DestinationValue {
  readonly [key: string]: Plain;
  /** `goto pick-3`, `drop`, …; "" when only endpoints are there (a load that was cut off). */
  readonly verdict: string;
  /** Name of the row, shown by `nft list`; "" for none. */
  readonly comment: string;
  readonly endpoints: readonly string[];
}

/** One destination by address: an element of `services` and its elements of `endpoints`. Key: `10.96.0.1 . tcp . 80`. */
export interface ServiceObject {
  readonly kind: "service";
  readonly key: string;
  readonly value: DestinationValue;
}

/** One node port: an element of `nodeports` and its elements of `nodeport-endpoints`. Key: `tcp . 30080`. */
export interface NodePortObject {
  readonly kind: "nodeport";
  readonly key: string;
  readonly value: DestinationValue;
}

/** The endpoint chains an affinity chain picks from, in index order. Key: `number . number`. */
export interface StickyObject {
  readonly kind: "sticky";
  readonly key: string;
  readonly value: readonly string[];
}

/** An element of a plain set. */
export interface ElementObject {
  readonly kind: "cluster-ips" | "hairpin" | "nodeport-ips";
  readonly key: string;
  readonly value: true;
}

/** Everything this backend keeps in the kernel. */
export type NftObject = TableObject | ChainObject | ServiceObject | NodePortObject | StickyObject | ElementObject;

/** Names of the plain sets. */
export const PLAIN_SETS: readonly ElementObject["kind"][] = ["cluster-ips", "hairpin", "nodeport-ips"];

/** The two maps behind each kind of destination. */
export const DESTINATION_MAPS: Readonly<Record<"service" | "nodeport", { readonly verdicts: string; readonly endpoints: string }>> = {
  service: { verdicts: "services", endpoints: "endpoints" },
  nodeport: { verdicts: "nodeports", endpoints: "nodeport-endpoints" },
};

import { abilitiesOf, ALL_CAPABILITIES } from "../contract/capabilities.ts";
import type { Variants } from "../contract/capabilities.ts";
import type { AskedPacket, ExplainedState } from "../explain/question.ts";
import type { NodeContext } from "../model/rows.ts";
import { createStoreView, rawNode } from "../testing/index.ts";
import type { RawObject } from "../testing/index.ts";

/** What {@link explainedState} is to say otherwise. */
export interface ExplainedFields extends Partial<Omit<ExplainedState, "node" | "variants">> {
  readonly node?: Partial<NodeContext>;
  readonly variants?: Partial<Variants>;
}

const NODE = rawNode("node1", { addresses: ["172.18.0.1"], podCIDRs: ["10.1.1.0/24"] });

/** What API objects come to on node1, for a backend that can do everything. */
export function explainedState(objects: readonly RawObject[], { node, variants, ...fields }: ExplainedFields = {}): ExplainedState {
  const { view, pull } = createStoreView([NODE, ...objects]);
  const context = pull()?.node;
  if (context === undefined) throw new Error("the first change set has a node");
  return {
    node: { ...context, ...node },
    rows: [...view.rows.values()],
    hostAddresses: ["127.0.0.1", "172.18.0.1"],
    nodePortAddressesDefault: [],
    ...abilitiesOf({ capabilities: ALL_CAPABILITIES, variants: variants ?? {} }),
    issues: [],
    ...fields,
  };
}

/** A packet of a pod of node1 for 10.96.0.10:80/TCP, but for these fields. */
export function askedPacket(fields: Partial<AskedPacket> = {}): AskedPacket {
  return { family: "IPv4", protocol: "TCP", source: "10.1.1.6", destination: "10.96.0.10", port: 80, device: "veth2", ...fields };
}

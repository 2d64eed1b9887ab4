/**
 * Turnout's eBPF dataplane: at sockets before there is any packet, and for packets from elsewhere by tc and conntrack.
 *
 * @packageDocumentation
 */
import { ebpfModule } from "./module.ts";

export { ebpfModule };
export type { EbpfObject } from "./objects.ts";
export type { EbpfFacts, EbpfOptions } from "./options.ts";
export { explainPlan, planDelta } from "./plan.ts";
export type { Step } from "./plan.ts";
export default ebpfModule;

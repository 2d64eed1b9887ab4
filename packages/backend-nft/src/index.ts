/**
 * Turnout's nftables dataplane: a flat ruleset of a few maps, one transaction per change.
 *
 * @packageDocumentation
 */
import { nftModule } from "./module.ts";

export { nftModule };
export { LAYOUT_VERSION, TABLE } from "./names.ts";
export type { NftObject } from "./objects.ts";
export type { NftFacts, NftOptions } from "./options.ts";
export { explainPlan, planDelta } from "./plan.ts";
export type { Transaction } from "./plan.ts";
export default nftModule;

/**
 * Turnout's iptables dataplane: kube-proxy's own chains, changed one by one.
 *
 * @packageDocumentation
 */
import { iptablesModule } from "./module.ts";

export { iptablesModule };
export { endpointChain, serviceChain } from "./names.ts";
export type { IptablesObject } from "./objects.ts";
export type { IptablesFacts, IptablesOptions } from "./options.ts";
export { explainPlan, planDelta } from "./plan.ts";
export type { Step } from "./plan.ts";
export type { Section } from "@turnout/host/iptables/text";
export { parseSaved } from "./observe.ts";
export default iptablesModule;

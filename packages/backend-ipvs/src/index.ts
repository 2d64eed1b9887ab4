/**
 * Turnout's ipvs dataplane: a virtual server per address and port, with the sets and chains of kube-proxy in ipvs mode.
 *
 * @packageDocumentation
 */
import { ipvsModule } from "./module.ts";

export { ipvsModule };
export type { IpvsObject } from "./objects.ts";
export type { IpvsFacts, IpvsOptions } from "./options.ts";
export { explainPlan, planDelta } from "./plan.ts";
export type { Step } from "./plan.ts";
export default ipvsModule;

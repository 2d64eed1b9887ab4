/**
 * Turnout's winkernel dataplane: load balancers of the Windows Host Network Service.
 *
 * @packageDocumentation
 */
import { winkernelModule } from "./module.ts";

export { winkernelModule };
export type { WinkernelFacts } from "./facts.ts";
export type { HnsHost, HnsKind, OwnKind } from "./hns/host.ts";
export { HnsError } from "./hns/error.ts";
export type { HnsFailure } from "./hns/error.ts";
export type { WinkernelObject } from "./objects.ts";
export type { WinkernelOptions } from "./options.ts";
export { explainPlan, planDelta } from "./plan.ts";
export type { Step } from "./plan.ts";
export default winkernelModule;

/**
 * Turnout's dataplane without a kernel: a TCP and UDP proxy in this process.
 *
 * @packageDocumentation
 */
import { userspaceModule } from "./module.ts";

export { userspaceModule };
export { OWN_DEVICE } from "./objects.ts";
export type { AddressObject, HostObject, LeftOutObject, UserspaceObject } from "./objects.ts";
export type { MapEntry, UserspaceOptions } from "./options.ts";
export type { Step } from "./plan.ts";
export type { UserspaceFacts } from "./render.ts";
export type { UserspaceWorld } from "./world.ts";
export default userspaceModule;

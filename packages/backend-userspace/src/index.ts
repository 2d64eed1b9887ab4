/**
 * Turnout's dataplane without a kernel: a TCP and UDP proxy in this process.
 *
 * @packageDocumentation
 */
import { userspaceModule } from "./module.ts";

export { userspaceModule };
export { OWN_DEVICE } from "./objects.ts";
export type {
  AddressObject,
  HostObject,
  LeftOutObject,
  ListenerObject,
  ListenerRule,
  ListenerValue,
  Transport,
  UserspaceObject,
} from "./objects.ts";
export type { MapEntry, UserspaceOptions } from "./options.ts";
export type { Step } from "./plan.ts";
export type { UserspaceFacts } from "./render.ts";
export type * from "./sockets.ts";
export default userspaceModule;

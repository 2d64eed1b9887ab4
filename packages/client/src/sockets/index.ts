export { hostViewOf } from "./decide.ts";
export { Fronts } from "./fronts.ts";
export type { ListenerObject, ListenerRule, ListenerValue, Transport } from "./listeners.ts";
export { createNodeSockets } from "./node-sockets.ts";
export type * from "./sockets.ts";
export { SharedSockets, Traffic } from "./traffic.ts";
export type { TrafficOptions } from "./traffic.ts";

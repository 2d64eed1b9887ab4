/**
 * The node state of one node in a process that programs it: from a source of this process, or from a node-state server.
 *
 * @packageDocumentation
 */
export { fillStore } from "./node-state/fill-store.ts";
export type { FillOptions, SourceEnvironment } from "./node-state/fill-store.ts";
export { NodeStateSource } from "./node-state/node-state-source.ts";
export type { NodeStateOptions } from "./node-state/node-state-source.ts";

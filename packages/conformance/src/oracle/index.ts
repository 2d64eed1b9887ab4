export { affinityOf } from "./affinity-of.ts";
export type { AffinityEntry } from "./affinity-of.ts";
export { flowFate } from "./flow-fate.ts";
export type { FlowFate } from "./flow-fate.ts";
export type { OracleObject, OracleWorld } from "./oracle-world.ts";
export * from "./packet.ts";
export { verdictOf } from "./verdict-of.ts";

/**
 * Rules of nf_tables and iptables as other programs wrote them: read into one form, and evaluated for one packet.
 *
 * @packageDocumentation
 */
export { evaluateChain } from "./evaluate.ts";
export type { LeaveOut, RunResult, Unconfirmed } from "./evaluate.ts";
export { isOfBridges } from "./rule.ts";
export type { ExternalChain, ExternalRule, ExternalTable, HookedPacket } from "./rule.ts";
export { isAddressIn } from "./values.ts";
export { newPacket, translatingRules, verdictOf } from "./verdict.ts";
export type { Unmarked, Verdict } from "./verdict.ts";
export { RecentLists } from "./recent-lists.ts";
export type { LearnedEntry } from "./rule.ts";

/**
 * iptables and the kernel behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { FakeIptables } from "./fake-iptables.ts";
export type { FakeIptablesHost, FakeIptablesOptions, FollowOptions } from "./fake-iptables.ts";
export { MARTIAN_RULE } from "./foreign-rules.ts";
export type { Rule } from "./rule.ts";
export type { Hook, TableName } from "./table-names.ts";
export type { Balance } from "./tracer.ts";
export { referencesTo, sortedChains } from "./tables.ts";
export type { Chain, Chains, Counters, Entry, RuleSet } from "./tables.ts";

/**
 * iptables and the kernel behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { linesOf } from "./inventory.ts";
export type { RuleOwnership } from "./inventory.ts";
export { FakeIptables } from "./fake-iptables.ts";
export type { FakeIptablesOptions } from "./fake-iptables.ts";
export { heard } from "./refusal.ts";
export { MARTIAN_RULE } from "./external-rules.ts";

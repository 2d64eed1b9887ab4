/**
 * The programs of iptables: which variant, waiting for the xtables lock, listing, changing. What is written with them: `@turnout/host/iptables/text`.
 *
 * @packageDocumentation
 */
export { hidesRules } from "./errors.ts";
export { explainLegacyFingerprints, legacyFingerprints } from "./legacy-fingerprints.ts";
export { SectionRestore } from "./section-restore.ts";
export type { CommitCounts } from "./section-restore.ts";
export { IptablesLookup, lookupIn, rememberLookup } from "./lookup.ts";
export type { IptablesMemory } from "./lookup.ts";
export { IptablesTool } from "./tool.ts";
export type { LockWaits } from "./tool.ts";
export { findIptables, iptablesName, lackingFamilies, loadLegacyModules } from "./tools.ts";
export type { InstalledIptables, IptablesProgram, IptablesVariant } from "./tools.ts";
export { unseenVariants } from "./unseen.ts";
export { listChains } from "./chain-listing.ts";
export { iptablesTable, readIptablesTable, readListedRule, readListing } from "./rules/listed-rules.ts";
export type { ListedChain } from "./rules/listed-rules.ts";
export { mayBeChain } from "./rules/targets.ts";
export { complainedLine, iptablesError } from "./errors.ts";
export { BITS } from "./rules/addresses.ts";
export { hookOf } from "./rules/listed-rules.ts";
export { CHAIN_MAX, RuleReader } from "./rules/rule-reader.ts";
export type { IptablesRule, MatchPart, RuleContext } from "./rules/rule.ts";
export { STANDARD_TARGETS, TARGETS } from "./rules/targets.ts";
export { rawWords, unquoted } from "./rules/words.ts";

/**
 * What a service proxy writes into iptables and reads from it, as text: rules, the input of `iptables-restore`, the output of `iptables-save`.
 *
 * Everything here is pure, so that what decides in a backend may use it.
 * @packageDocumentation
 */
export { jumpObjects, jumpOf } from "./jumps.ts";
export type { Jump } from "./jumps.ts";
export { isMarked, MARKER_CHAIN, withoutOtherModes } from "./modes.ts";
export type { ModeWords } from "./modes.ts";
export * from "./objects.ts";
export * from "./rule-text.ts";
export { rulesDiffer } from "./rules-differ.ts";
export { readCounted, readSaved, sharedObjects } from "./saved.ts";
export { deletionsOf, restoreInput } from "./section.ts";
export type { Section } from "./section.ts";
export { cutSections } from "./cut-sections.ts";
export { SectionWriter, sectionWriters, writeRules } from "./section-writer.ts";
export type { SectionWriters } from "./section-writer.ts";

import type { ChainObject } from "./objects.ts";
import { sectionOf } from "./section.ts";
import type { Section } from "./section.ts";

/** Chains in one section for the nft variant: the time it takes for a section grows with the square of the chains that this one names. */
const CHAINS_MAX = 200;

/**
 * Cut a large change into more sections: chains that nothing leads to yet ahead of it, chains that nothing leads to any more behind it.
 *
 * Shape: what is in force changes with the sections that were there before, and no other; but chains that somebody has emptied fill ahead, those that
 * others jump to first. A change of the usual size stays as it is.
 */
export function cutSections(sections: readonly Section[], chainsMax: number = CHAINS_MAX): readonly Section[] {
  const ahead: Section[] = [];
  const behind: Section[] = [];
  const main = sections.map((section): Section => {
    const fresh = section.fresh.length > chainsMax ? chunksOf(section.fresh, chainsMax) : [];
    const dead = section.dead.length > chainsMax ? chunksOf(section.dead, chainsMax) : [];
    ahead.push(...fresh.map((chunk) => sectionOf(section.table, { fresh: chunk })));
    behind.push(...dead.map((chunk) => sectionOf(section.table, { dead: chunk })));
    return { ...section, fresh: fresh.length > 0 ? [] : section.fresh, dead: dead.length > 0 ? [] : section.dead };
  });
  return ahead.length + behind.length === 0 ? sections : [...ahead, ...main, ...behind];
}

function chunksOf(chains: readonly ChainObject[], chainsMax: number): readonly (readonly ChainObject[])[] {
  return Array.from({ length: Math.ceil(chains.length / chainsMax) }, (_, index) =>
    chains.slice(index * chainsMax, (index + 1) * chainsMax),
  );
}

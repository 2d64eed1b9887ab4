import type { Action, ExternalChain, ExternalRule, ExternalTable, PartlyKnown } from "./rule.ts";

/** What a base chain does to packets of which little is known. */
export interface Verdict {
  /**
   * `through`: to packets that no rule is about in particular, nothing. `none`: every packet is dropped, for all that can be read. `some`: packets
   * are dropped, unless a rule that can't be decided knows them.
   */
  readonly is: "through" | "some" | "none";
  /** The chain that drops. */
  readonly chain?: string;
  /** The rule that drops; absent: the chain's policy does. */
  readonly rule?: ExternalRule;
}

/**
 * Ask a base chain what becomes of packets of which little is known. Pure.
 *
 * Shape: a rule of which it can't be told whether it fits is taken both ways. As what fits it, packets may pass; as what does not, the rules after
 * it decide.
 * Edges: marks are not followed. What a chain does that is not there can't be told.
 */
export function verdictOf(table: ExternalTable, base: ExternalChain, packet: Unmarked): Verdict {
  const { sure, mayPass, mayReturn } = walk(base, { table, packet, known: new Map() });
  const isOpen = base.hook?.policy !== "drop";
  if (sure === "pass" || (sure === "return" && isOpen)) return { is: "through" };
  const is = mayPass || (mayReturn && isOpen) ? "some" : "none";
  return sure === "return" ? { is, chain: base.name } : { is, chain: sure.chain, rule: sure.rule };
}

/** Name the rules of a chain by which packets of which little is known may be translated, there or further on. Pure. */
export function translatingRules(table: ExternalTable, { name, rules }: ExternalChain, packet: Unmarked): readonly ExternalRule[] {
  const scene: Scene = { table, packet, known: new Map() };
  return rules.filter((rule) => walkRules({ name, rules: [rule] }, scene).mayTranslate);
}

/** A packet whose mark isn't known. */
export type Unmarked = PartlyKnown & { readonly mark: undefined };

/** A packet of which nothing is known but that it opens a connection. */
export function newPacket(family: PartlyKnown["family"]): Unmarked {
  return {
    family,
    state: "new",
    protocol: undefined,
    source: undefined,
    destination: undefined,
    sourcePort: undefined,
    destinationPort: undefined,
    inDevice: undefined,
    outDevice: undefined,
    isTranslated: undefined,
    isAnsweredThere: undefined,
    mark: undefined,
    isLocal: () => undefined,
    isInSet: () => undefined,
  };
}

/** What a chain may do. */
interface Outcome {
  /** What becomes of packets that no undecided rule fits. */
  readonly sure: "pass" | "return" | { readonly chain: string; readonly rule: ExternalRule };
  /** Whether some packet may be let through, come back, be translated. */
  readonly mayPass: boolean;
  readonly mayReturn: boolean;
  readonly mayTranslate: boolean;
}

interface Scene {
  readonly table: ExternalTable;
  readonly packet: Unmarked;
  /** By the chain's name; those that are being walked are there, too. */
  readonly known: Map<string, Outcome>;
}

const RETURNS: Outcome = { sure: "return", mayPass: false, mayReturn: true, mayTranslate: false };
const PASSES: Outcome = { sure: "pass", mayPass: true, mayReturn: false, mayTranslate: false };
/** Of what can't be read. */
const ANYTHING: Outcome = { sure: "return", mayPass: true, mayReturn: true, mayTranslate: false };

function walk(chain: ExternalChain, scene: Scene): Outcome {
  const known = scene.known.get(chain.name);
  if (known !== undefined) return known;
  // The kernel has no circles; a listing that is half old and half new may.
  scene.known.set(chain.name, ANYTHING);
  const outcome = walkRules(chain, scene);
  scene.known.set(chain.name, outcome);
  return outcome;
}

function walkRules(chain: ExternalChain, scene: Scene): Outcome {
  let sure: Outcome["sure"] | undefined;
  const may = { mayPass: false, mayReturn: false, mayTranslate: false };
  for (const rule of chain.rules) {
    const answers = rule.tests.map((test) => test(scene.packet));
    if (answers.includes(false)) continue;
    let isForAll = !answers.includes(undefined);
    for (const step of rule.actions) {
      const chosen = typeof step === "function" ? step(scene.packet) : step;
      if (chosen === undefined) continue;
      const several = [chosen].flat();
      if (several[0]?.does === "next") break;
      if (several[0]?.does === "maybe") isForAll = false;
      // Which action of a map it is may not be known: then all of them may be, and none. Of a map that was not listed nothing is known.
      const action = Array.isArray(chosen) ? undefined : several[0];
      const choices = several.length === 0 ? [undefined] : several;
      const results = choices.map((choice) => outcomeOf(choice, chain, rule, scene));
      for (const { ends, goesOn } of results) {
        may.mayPass ||= ends.mayPass;
        may.mayTranslate ||= ends.mayTranslate;
        may.mayReturn ||= ends.mayReturn && !goesOn;
      }
      const [only] = results;
      if (action === undefined || only === undefined) continue;
      const { ends, goesOn } = only;
      if (isForAll && (ends.sure !== "return" || !goesOn)) sure ??= ends.sure;
      if (isForAll && !(goesOn && ends.mayReturn)) return { sure: sure ?? ends.sure, ...may };
      if (!goesOn) break;
    }
  }
  return { sure: sure ?? "return", ...may, mayReturn: true };
}

/** What one action may do; `goesOn`: packets that return go on with what comes after it, not with the chain's caller. */
function outcomeOf(
  action: Action | undefined,
  chain: ExternalChain,
  rule: ExternalRule,
  { table, ...scene }: Scene,
): { readonly ends: Outcome; readonly goesOn: boolean } {
  switch (action?.does) {
    case undefined:
      return { ends: ANYTHING, goesOn: true };
    case "accept":
      return { ends: PASSES, goesOn: false };
    case "translate":
      return { ends: { ...PASSES, mayTranslate: true }, goesOn: false };
    case "drop":
    case "reject":
      return { ends: { sure: { chain: chain.name, rule }, mayPass: false, mayReturn: false, mayTranslate: false }, goesOn: false };
    case "return":
      return { ends: RETURNS, goesOn: false };
    case "mark":
    case "priority":
    case "notrack":
    case "nothing":
    case "next":
    case "maybe":
    case "source":
      return { ends: RETURNS, goesOn: true };
    case "queue":
      return { ends: ANYTHING, goesOn: true };
    case "jump":
    case "goto": {
      const next = table.chains.get(action.chain);
      const ends = next === undefined ? ANYTHING : walk(next, { table, ...scene });
      return { ends, goesOn: action.does === "jump" };
    }
  }
}

import type { Action, ForeignChain, ForeignRule, ForeignTable, HookedPacket } from "./rule.ts";

/** What a table's chains at one hook did to a packet. */
export interface Played {
  readonly is: "pass" | "drop" | "reject";
  /** Where it was decided: chains from the hook's on, and the rule; absent rule: the policy. */
  readonly chain?: string;
  readonly rule?: ForeignRule;
  readonly isTranslated: boolean;
  readonly isUntracked: boolean;
  readonly mark: number;
  /** The rule that did the last of these. */
  readonly by?: ForeignRule;
  readonly byChain?: string;
}

const DEPTH_MAX = 32;

/**
 * Play a packet through one base chain. Pure.
 *
 * Edges: a rule of which it can't be told whether it matches counts as not matching: what it would do is not blamed on anybody. A chain that isn't
 * there, of those that were left out (`isSkipped`), comes back.
 */
export function playChain(table: ForeignTable, base: ForeignChain, packet: HookedPacket, isSkipped: (chain: string) => boolean): Played {
  const state: State = { mark: packet.mark, isTranslated: false, isUntracked: false, by: undefined, byChain: undefined };
  const end = walk(table, base, packet, isSkipped, state, 0);
  const effects = { ...state };
  const { by, byChain, ...rest } = effects;
  const told = { ...rest, ...(by === undefined ? {} : { by }), ...(byChain === undefined ? {} : { byChain }) };
  if (end === "return" || end === "end")
    return base.hook?.policy === "drop" ? { ...told, is: "drop", chain: base.name } : { ...told, is: "pass" };
  return { ...told, ...end };
}

interface State {
  mark: number;
  isTranslated: boolean;
  isUntracked: boolean;
  by: ForeignRule | undefined;
  byChain: string | undefined;
}

type End = "return" | "end" | { readonly is: Played["is"]; readonly chain: string; readonly rule: ForeignRule };

function walk(
  table: ForeignTable,
  chain: ForeignChain,
  packet: HookedPacket,
  isSkipped: (chain: string) => boolean,
  state: State,
  depth: number,
): End {
  if (depth > DEPTH_MAX) return "end";
  for (const rule of chain.rules) {
    const seen = { ...packet, mark: state.mark };
    if (!rule.tests.every((test) => test(seen) === true)) continue;
    for (const step of rule.actions) {
      const action = typeof step === "function" ? step(seen) : step;
      if (action === undefined) continue;
      const end = act(action, { table, chain, rule, packet: seen, isSkipped, state, depth });
      if (end !== undefined) return end;
    }
  }
  return "end";
}

interface Scene {
  readonly table: ForeignTable;
  readonly chain: ForeignChain;
  readonly rule: ForeignRule;
  readonly packet: HookedPacket;
  readonly isSkipped: (chain: string) => boolean;
  readonly state: State;
  readonly depth: number;
}

/** Carry out one action; undefined: the next one follows. */
function act(action: Action, { table, chain, rule, packet, isSkipped, state, depth }: Scene): End | undefined {
  const note = (): void => void Object.assign(state, { by: rule, byChain: chain.name });
  switch (action.does) {
    case "accept":
      return { is: "pass", chain: chain.name, rule };
    case "drop":
    case "reject":
      return { is: action.does, chain: chain.name, rule };
    case "return":
      return "return";
    case "notrack":
      state.isUntracked = true;
      note();
      return undefined;
    case "translate":
      state.isTranslated = true;
      note();
      return { is: "pass", chain: chain.name, rule };
    case "mark":
      state.mark = ((state.mark & action.keep) ^ action.flip) >>> 0;
      note();
      return undefined;
    case "nothing":
      return undefined;
    case "jump":
    case "goto": {
      const next = table.chains.get(action.chain);
      if (next === undefined || isSkipped(action.chain)) return undefined;
      const end = walk(table, next, packet, isSkipped, state, depth + 1);
      if (typeof end !== "string") return end;
      // A goto does not come back to where it was.
      return action.does === "goto" ? "end" : undefined;
    }
  }
}

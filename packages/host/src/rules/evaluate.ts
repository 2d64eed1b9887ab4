import type { Action, ExternalChain, ExternalRule, ExternalTable, HookedPacket } from "./rule.ts";

/** A rule of which it can't be told whether it fits, and what it does where it does. */
export interface Unconfirmed {
  readonly chain: string;
  readonly rule: ExternalRule;
  readonly may: "pass" | "drop" | "reject";
}

/** What a table's chains at one hook did to a packet. */
export interface RunResult {
  readonly is: "pass" | "drop" | "reject";
  /** Where it was decided: chains from the hook's on, and the rule; absent rule: the policy. */
  readonly chain?: string;
  readonly rule?: ExternalRule;
  readonly isTranslated: boolean;
  readonly isUntracked: boolean;
  readonly mark: number;
  /** Bits of the mark that aren't known. */
  readonly unclearMark: number;
  /** What the destination becomes, as far as it is known; absent: it is not translated here. */
  readonly destination?: { readonly address?: string; readonly port?: number } | undefined;
  /** What the source becomes, and by which rule. */
  readonly source: { readonly address: string; readonly chain: string; readonly rule: ExternalRule } | undefined;
  /** The rule by which the packet left the base chain itself, to its policy. */
  readonly returnedBy?: ExternalRule | undefined;
  /** The rule that did the last of these. */
  readonly by?: ExternalRule | undefined;
  readonly byChain?: string | undefined;
  /** Nothing was met of which it can't be told what it does. */
  readonly isCertain: boolean;
  /** In the order in which the packet met them. */
  readonly unconfirmed: readonly Unconfirmed[];
  /** Chains that were called and left out. */
  readonly skipped: ReadonlySet<string>;
  /** Rules that fit for certain, in the order in which the packet met them. */
  readonly matched: readonly { readonly chain: string; readonly rule: ExternalRule }[];
}

/** What is done at a chain that is not played: go on behind it, or end there, because it decides. */
export type LeftOut = "skip" | "end";

/** Says which chains are not played; undefined: this one is. */
export type LeaveOut = (chain: string) => LeftOut | undefined;

const DEPTH_MAX = 32;
/** Chains that call each other many times have more ways through them than anybody can follow. */
const RULES_MAX = 50_000;

/**
 * Play a packet through one base chain. Pure.
 *
 * Edges: a rule of which it can't be told whether it matches counts as not matching, and is a doubt: what it would do is not blamed on anybody. A
 * chain that isn't there, of those that were left out (`leaveOut`), comes back. Where more than 50,000 rules are met, the rule after them is a doubt.
 */
export function evaluateChain(table: ExternalTable, base: ExternalChain, packet: HookedPacket, leaveOut: LeaveOut): RunResult {
  const state: State = {
    mark: packet.mark,
    unclearMark: packet.unclearMark ?? 0,
    priority: packet.priority,
    source: undefined,
    isTranslated: false,
    isUntracked: false,
    by: undefined,
    byChain: undefined,
    isCertain: true,
    unconfirmed: [],
    skipped: new Set(),
    matched: [],
    met: { rules: 0 },
    returnedBy: undefined,
  };
  const end = walk(table, base, packet, leaveOut, state, 0);
  const { met: _, priority: _own, ...reported } = state;
  if (end === "return" || end === "end")
    return base.hook?.policy === "drop" ? { ...reported, is: "drop", chain: base.name } : { ...reported, is: "pass" };
  return { ...reported, ...end };
}

interface State {
  mark: number;
  unclearMark: number;
  priority: number | undefined;
  source: RunResult["source"];
  isTranslated: boolean;
  isUntracked: boolean;
  by: ExternalRule | undefined;
  byChain: string | undefined;
  isCertain: boolean;
  readonly unconfirmed: Unconfirmed[];
  readonly skipped: Set<string>;
  readonly matched: { readonly chain: string; readonly rule: ExternalRule }[];
  destination?: RunResult["destination"];
  readonly met: { rules: number };
  returnedBy: ExternalRule | undefined;
}

type End = "return" | "end" | { readonly is: RunResult["is"]; readonly chain: string; readonly rule: ExternalRule };

function walk(table: ExternalTable, chain: ExternalChain, packet: HookedPacket, leaveOut: LeaveOut, state: State, depth: number): End {
  if (depth > DEPTH_MAX) {
    state.isCertain = false;
    return "end";
  }
  for (const rule of chain.rules) {
    state.met.rules += 1;
    if (state.met.rules > RULES_MAX) {
      state.isCertain = false;
      if (state.met.rules === RULES_MAX + 1) state.unconfirmed.push({ chain: chain.name, rule, may: "drop" });
      return "end";
    }
    const fits = fitOf(rule, seenBy(packet, state));
    if (fits === false) continue;
    const end = carryOut({ table, chain, rule, packet, leaveOut, state, depth }, fits === true);
    if (end === "return" && depth === 0) state.returnedBy = rule;
    if (end !== undefined) return end;
  }
  return "end";
}

/** The packet as it is after earlier rules. */
function seenBy(packet: HookedPacket, { mark, unclearMark, priority }: State): HookedPacket {
  if (mark === packet.mark && unclearMark === (packet.unclearMark ?? 0) && priority === packet.priority) return packet;
  return { ...packet, mark, unclearMark, ...(priority === undefined ? {} : { priority }) };
}

/** Carry out the actions of a rule; undefined: the next rule follows. What can't be told to be met is only noted. */
function carryOut(scene: Scene, fits: boolean): End | undefined {
  const { chain, rule, packet, state } = scene;
  let isCertain = fits;
  let isMatched = false;
  for (const step of rule.actions) {
    const action = typeof step === "function" ? step(seenBy(packet, state)) : step;
    if (action === undefined) continue;
    const chosen = isSeveral(action) ? action : [action];
    if (chosen.some(({ does }) => does === "next")) return undefined;
    if (chosen.some(({ does }) => does === "maybe")) isCertain = false;
    if (isSeveral(action) || !isCertain) {
      state.isCertain = false;
      noteUnconfirmed(chosen, scene);
    } else {
      if (!isMatched) state.matched.push({ chain: chain.name, rule });
      isMatched = true;
      const end = act(action, scene);
      if (end !== undefined) return end;
    }
  }
  return undefined;
}

/** Whether all tests of a rule fit; undefined: it can't be told. */
function fitOf({ tests }: ExternalRule, packet: HookedPacket): boolean | undefined {
  let fits: boolean | undefined = true;
  for (const test of tests) {
    const one = test(packet);
    if (one === false) return false;
    if (one === undefined) fits = undefined;
  }
  return fits;
}

interface Scene {
  readonly table: ExternalTable;
  readonly chain: ExternalChain;
  readonly rule: ExternalRule;
  readonly packet: HookedPacket;
  readonly leaveOut: LeaveOut;
  readonly state: State;
  readonly depth: number;
}

function isSeveral(action: Action | readonly Action[]): action is readonly Action[] {
  return Array.isArray(action);
}

/** Note what would come of actions, each by itself, and leave everything as it is. */
function noteUnconfirmed(actions: readonly Action[], scene: Scene): void {
  const { chain, rule, state } = scene;
  for (const action of actions) {
    const end = act(action, { ...scene, state: { ...state, matched: [] } });
    if (typeof end !== "object" || state.unconfirmed.some((one) => one.rule === rule && one.may === end.is)) continue;
    state.unconfirmed.push({ chain: chain.name, rule, may: end.is });
  }
}

/** Carry out one action; undefined: the next one follows. */
function act(action: Action, { table, chain, rule, packet, leaveOut, state, depth }: Scene): End | undefined {
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
      state.destination = {
        ...(action.address === undefined ? {} : { address: action.address }),
        ...(action.port === undefined ? {} : { port: action.port }),
      };
      note();
      return { is: "pass", chain: chain.name, rule };
    case "mark":
      state.mark = ((state.mark & action.keep) ^ action.flip) >>> 0;
      state.unclearMark = ((state.unclearMark & action.keep) | (action.unclear ?? 0)) >>> 0;
      note();
      return undefined;
    case "priority":
      state.priority = action.value;
      return undefined;
    case "source":
      state.source = { address: action.address, chain: chain.name, rule };
      return { is: "pass", chain: chain.name, rule };
    case "queue": {
      const served = action.queues.map((queue) => packet.isQueueServed?.(queue));
      if (served.length > 0 && served.every((one) => one === false))
        return { is: action.isBypassed ? "pass" : "drop", chain: chain.name, rule };
      state.isCertain = false;
      if (!state.unconfirmed.some((one) => one.rule === rule)) state.unconfirmed.push({ chain: chain.name, rule, may: "drop" });
      return undefined;
    }
    case "nothing":
    case "next":
    case "maybe":
      return undefined;
    case "jump":
    case "goto": {
      const next = table.chains.get(action.chain);
      const left = leaveOut(action.chain);
      if (left !== undefined) state.skipped.add(action.chain);
      if (left === "end") return { is: "pass", chain: chain.name, rule };
      if (next === undefined && left === undefined) state.isCertain = false;
      if (next === undefined || left === "skip") return undefined;
      const end = walk(table, next, packet, leaveOut, state, depth + 1);
      if (typeof end !== "string") return end;
      // A goto does not come back to where it was.
      return action.does === "goto" ? "end" : undefined;
    }
  }
}

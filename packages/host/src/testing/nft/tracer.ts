import { hostPort } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import { UPLINK } from "@turnout/conformance";
import { inOrder } from "../../nft/hook-order.ts";
import type { BaseHook, Chain, Ruleset, StepResult } from "./ruleset.ts";
import type { Hook } from "./hooks.ts";
import { EXTERNAL_BIT } from "../external-mark.ts";
import { Walk } from "./walk.ts";
import type { WalkHost } from "./walk.ts";

/** A chain and the table it is in. */
interface Hooked {
  readonly table: string;
  readonly chain: Chain;
}

const LOOPBACK = "lo";

type Fate = "accept" | "drop" | "reject";

/**
 * Follow the first packet of a connection through all tables of its family, hook by hook, as the kernel would.
 *
 * Shape: what comes in by a link meets prerouting, then input or forward; what the host sends meets output, and when it is for
 * the host itself prerouting and input, too (without nat: that was done). All but input lead to postrouting.
 * Beyond postrouting somebody drops what leaves with another mark than it came with and their own bit.
 * Edges: there are no routes: everything that is not for an address of the host leaves by the uplink. What a rule learns goes into the
 * host's undo log; take it back for a mere look.
 */
export function tracePacket(ruleset: Ruleset, packet: Packet, host: WalkHost): Trace {
  const walk = new Walk(packet, host);
  const cameWith = walk.mark;
  const passed = passHooks(ruleset, walk, packet.link === "");
  const isMarked = passed === "accept" && walk.hasLeft && walk.mark >>> 0 !== (cameWith | EXTERNAL_BIT) >>> 0;
  if (isMarked) walk.path.push(`somebody beyond postrouting: the mark is 0x${(walk.mark >>> 0).toString(16)}`);
  const fate = isMarked ? "drop" : passed;
  const { path } = walk;
  if (fate !== "accept") return { is: fate, path };
  if (!walk.isDestinationTranslated) return { is: "pass", path };
  return { is: "forward", endpoint: hostPort(walk.destination, walk.port), masquerade: walk.isSourceTranslated, path };
}

function passHooks(ruleset: Ruleset, walk: Walk, isOwn: boolean): Fate {
  const pass = (hook: Hook, withNat: boolean = true): Fate => {
    // The link is that of the route when the hook is entered: a translation inside of output doesn't change it.
    const isLeaving = hook === "output" || hook === "forward" || hook === "postrouting";
    if (hook === "postrouting") walk.hasLeft = true;
    walk.outputLink = isLeaving ? (walk.isLocal(walk.destination) ? LOOPBACK : UPLINK) : "";
    return passHook(ruleset, walk, hook, withNat);
  };
  const first = pass(isOwn ? "output" : "prerouting");
  if (first !== "accept") return first;
  const isForHost = walk.isLocal(walk.destination);
  if (!isOwn) {
    if (isForHost) return pass("input");
    const forwarded = pass("forward");
    return forwarded === "accept" ? pass("postrouting") : forwarded;
  }
  const sent = pass("postrouting");
  if (sent !== "accept" || !isForHost) return sent;
  walk.inputLink = LOOPBACK;
  const looped = pass("prerouting", false);
  return looped === "accept" ? pass("input", false) : looped;
}

function passHook(ruleset: Ruleset, walk: Walk, hook: Hook, withNat: boolean): Fate {
  for (const { table, chain } of chainsAt(ruleset, walk.family, hook)) {
    if (chain.base?.type === "nat" && (!withNat || walk.isTranslatedAt(hook))) continue;
    walk.path.push(`${hook}: ${table} ${chain.name}`);
    const result = runChain(chain, walk);
    const fate = result?.verdict ?? chain.policy;
    if (fate === "drop" || fate === "reject") return fate;
  }
  return "accept";
}

/** As the kernel calls them: nat chains together, and of those at one priority the one that was made last comes first. */
function chainsAt({ tables }: Ruleset, family: "ip" | "ip6", hook: Hook): readonly Hooked[] {
  const order = inOrder(hook);
  const found: (Hooked & { readonly base: BaseHook })[] = [];
  for (const table of tables.values()) {
    if (table.family !== family) continue;
    for (const chain of table.chains.values()) if (chain.base?.hook === hook) found.push({ table: table.name, chain, base: chain.base });
  }
  return found.toReversed().toSorted((one, other) => order(one.base, other.base));
}

type Final = { readonly verdict: "accept" | "drop" | "reject" };

/** Run a chain; undefined: the packet came out at its end, or by return. */
function runChain(chain: Chain, walk: Walk): Final | undefined {
  for (const { text, statements } of chain.rules) {
    let result: StepResult;
    for (const statement of statements) {
      result = statement.run(walk);
      if (result !== undefined) break;
    }
    if (result === "break") continue;
    walk.path.push(`${chain.name}: ${text}`);
    if (result === undefined) continue;
    switch (result.verdict) {
      case "accept":
      case "drop":
      case "reject":
        return { verdict: result.verdict };
      case "continue":
        continue;
      case "return":
        return undefined;
      case "jump": {
        const inner = result.chain === undefined ? undefined : runChain(result.chain, walk);
        if (inner !== undefined) return inner;
        continue;
      }
      case "goto":
        return result.chain === undefined ? undefined : runChain(result.chain, walk);
    }
  }
  return undefined;
}

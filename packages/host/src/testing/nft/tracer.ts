import { hostPort } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import { UPLINK } from "@turnout/conformance";
import { inOrder } from "../../nft/hook-order.ts";
import { evaluateChain } from "../../rules/evaluate.ts";
import type { HookedPacket } from "../../rules/rule.ts";
import { EXTERNAL_BIT } from "../external-mark.ts";
import { learnKey } from "./learn-key.ts";
import type { BaseHook, Chain, Ruleset, Table } from "./ruleset.ts";
import type { UndoLog } from "./undo-log.ts";

const LOOPBACK = "lo";
const SOURCE_PORT = 40_000;

/** What a trace needs to know of the host. */
export interface TraceHost {
  isLocal(address: string): boolean;
  /** In [0, 1). */
  random(): number;
  readonly nowMs: number;
  /** Takes down what the packet leaves in dynamic sets. */
  readonly undo: UndoLog;
}

type Fate = "accept" | "drop" | "reject";

/**
 * Follow the first packet of a connection through all tables of its family, hook by hook, as the kernel would.
 *
 * Shape: what comes in by a link meets prerouting, then input or forward; what the host sends meets output, and when it is for
 * the host itself prerouting and input, too (without nat: that was done). All but input lead to postrouting.
 * Beyond postrouting another program drops what leaves with another mark than it came with and that program's own bit.
 * Edges: there are no routes: everything that is not for an address of the host leaves by the uplink. What a rule learns goes into the
 * host's undo log; take it back for a mere look.
 */
export function tracePacket(ruleset: Ruleset, packet: Packet, host: TraceHost): Trace {
  const trace = new PacketTrace(ruleset, packet, host);
  const passed = trace.passHooks(packet.link === "");
  const { path, mark } = trace;
  const isMarked = passed === "accept" && trace.hasLeft && mark >>> 0 !== ((packet.mark ?? 0) | EXTERNAL_BIT) >>> 0;
  if (isMarked) path.push(`another program, beyond postrouting: the mark is 0x${(mark >>> 0).toString(16)}`);
  const fate = isMarked ? "drop" : passed;
  if (fate !== "accept") return { is: fate, path };
  if (!trace.isTranslated) return { is: "pass", path };
  return { is: "forward", endpoint: hostPort(trace.destination, trace.port), masquerade: trace.isSourceTranslated, path };
}

/** A packet on its way through the hooks, as rules see and change it. */
class PacketTrace {
  /** The way it took, for people. */
  readonly path: string[] = [];
  readonly #ruleset: Ruleset;
  readonly #packet: Packet;
  readonly #host: TraceHost;
  source: string;
  destination: string;
  port: number;
  mark: number;
  isTranslated = false;
  isSourceTranslated = false;
  /** Whether it has come to postrouting. */
  hasLeft = false;
  #inDevice: string;

  constructor(ruleset: Ruleset, packet: Packet, host: TraceHost) {
    this.#ruleset = ruleset;
    this.#packet = packet;
    this.#host = host;
    this.source = packet.source;
    this.destination = packet.destination;
    this.port = packet.port;
    this.mark = packet.mark ?? 0;
    this.#inDevice = packet.link;
  }

  passHooks(isOwn: boolean): Fate {
    const first = this.#passHook(isOwn ? "output" : "prerouting");
    if (first !== "accept") return first;
    const isForHost = this.#host.isLocal(this.destination);
    if (!isOwn) {
      if (isForHost) return this.#passHook("input");
      const forwarded = this.#passHook("forward");
      return forwarded === "accept" ? this.#passHook("postrouting") : forwarded;
    }
    const sent = this.#passHook("postrouting");
    if (sent !== "accept" || !isForHost) return sent;
    this.#inDevice = LOOPBACK;
    const looped = this.#passHook("prerouting", false);
    return looped === "accept" ? this.#passHook("input", false) : looped;
  }

  #passHook(hook: string, withNat: boolean = true): Fate {
    this.hasLeft ||= hook === "postrouting";
    const isLeaving = hook === "output" || hook === "forward" || hook === "postrouting";
    // The link is that of the route when the hook is entered: a translation inside of output doesn't change it.
    const outDevice = isLeaving ? (this.#host.isLocal(this.destination) ? LOOPBACK : UPLINK) : "";
    for (const { table, chain, base } of this.#chainsAt(hook)) {
      const isDecided = hook === "postrouting" || hook === "input" ? this.isSourceTranslated : this.isTranslated;
      if (base.type === "nat" && (!withNat || isDecided)) continue;
      this.path.push(`${hook}: ${table.name} ${chain.name}`);
      const fate = this.#passChain(table, chain, outDevice);
      if (fate !== "accept") return fate;
    }
    return "accept";
  }

  /** As the kernel calls them: nat chains together, and of those at one priority the one that was made last comes first. */
  #chainsAt(hook: string): readonly { readonly table: Table; readonly chain: Chain; readonly base: BaseHook }[] {
    const order = inOrder(hook);
    const family = this.#packet.family === "IPv4" ? "ip" : "ip6";
    const found = [...this.#ruleset.tables.values()]
      .filter((table) => table.family === family)
      .flatMap((table) =>
        [...table.chains.values()].flatMap((chain) => (chain.hook?.at === hook ? [{ table, chain, base: chain.hook }] : [])),
      );
    return found.toReversed().toSorted((one, other) => order(one.base, other.base));
  }

  #passChain(table: Table, chain: Chain, outDevice: string): Fate {
    const result = evaluateChain(table, chain, this.#hooked(table, outDevice), () => undefined);
    if (!result.isCertain) throw new Error(`a rule of chain ${chain.name} in table ${table.place} can't be judged in memory`);
    this.path.push(...result.matched.map(({ chain: name, rule }) => `${name}: ${rule.text}`));
    this.mark = result.mark;
    if (result.isTranslated) {
      this.destination = result.destination?.address ?? this.destination;
      this.port = result.destination?.port ?? this.port;
      this.isTranslated = true;
    }
    if (result.source !== undefined) {
      // Masquerading takes an address of the host; which one doesn't matter.
      this.source = result.source.address === "" ? this.source : result.source.address;
      this.isSourceTranslated = true;
    }
    return result.is === "pass" ? "accept" : result.is;
  }

  #hooked(table: Table, outDevice: string): HookedPacket {
    const { family, protocol, source, destination, port } = this.#packet;
    const { isLocal, random, nowMs, undo } = this.#host;
    return {
      family,
      protocol: protocol.toLowerCase(),
      source: this.source,
      destination: this.destination,
      sourcePort: SOURCE_PORT,
      destinationPort: this.port,
      inDevice: this.#inDevice,
      outDevice,
      state: "new",
      isTranslated: this.isTranslated,
      isAnsweredThere: undefined,
      mark: this.mark,
      original: { source, destination, destinationPort: port },
      isLocal: (address) => isLocal(address),
      isInSet: () => undefined,
      random: () => random(),
      learn: (entry) => learnKey(table, entry, nowMs, undo),
    };
  }
}

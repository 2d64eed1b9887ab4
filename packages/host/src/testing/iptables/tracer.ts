import { hostPort } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import { UPLINK } from "@turnout/conformance";
import { FOREIGN_BIT } from "../foreign-mark.ts";
import { isMatch } from "./rule.ts";
import type { Rule } from "./rule.ts";
import type { Chains, RuleSet } from "./tables.ts";
import type { Hook, TableName } from "./table-names.ts";
import { Walk } from "./walk.ts";
import type { WalkHost } from "./walk.ts";

const LOOPBACK = "lo";

/** The tables a packet meets at each hook, by priority. @source Linux include/uapi/linux/netfilter_ipv4.h enum nf_ip_hook_priorities */
const ORDER: Readonly<Record<Hook, readonly TableName[]>> = {
  PREROUTING: ["raw", "mangle", "nat"],
  INPUT: ["mangle", "filter", "security", "nat"],
  FORWARD: ["mangle", "filter", "security"],
  OUTPUT: ["raw", "mangle", "nat", "filter", "security"],
  POSTROUTING: ["mangle", "nat"],
};

/** What a trace needs to know of the host. */
export interface TraceHost extends WalkHost {
  /** Rules that act on the packet: those of both variants, in its family. At one hook and priority they act in this order. */
  readonly ruleSets: readonly RuleSet[];
  /** Whether loopback addresses are routed like others (net.ipv4.conf.all.route_localnet). */
  readonly routesLocalnet: boolean;
}

type Fate = "accept" | "drop" | "reject";

/**
 * Follow the first packet of a connection through the tables, hook by hook, as the kernel would.
 *
 * Shape: what comes in by a link meets PREROUTING, then INPUT or FORWARD; what the host sends meets OUTPUT, and when it is for the host itself
 * PREROUTING and INPUT, too (without nat: that was done). All but INPUT lead to POSTROUTING.
 * Edges: there are no routes: everything that is not for an address of the host leaves by the uplink. Beyond POSTROUTING somebody drops what
 * bears another mark than theirs.
 */
export function tracePacket(packet: Packet, host: TraceHost): Trace {
  const walk = new Walk(leaving(packet), host);
  const fate = new Tracer(walk, host).passHooks(packet.link === "");
  const { path } = walk;
  if (fate !== "accept") return { is: fate, path };
  if (!walk.isDestinationTranslated) return { is: "pass", path };
  return { is: "forward", endpoint: hostPort(walk.destination, walk.port), masquerade: walk.isSourceTranslated, path };
}

/** The kernel sends from a loopback address what goes to one; the kit names its senders by their node. */
function leaving(packet: Packet): Packet {
  const { family, link, destination } = packet;
  if (link !== "" || !isLoopback(destination, family)) return packet;
  return { ...packet, source: family === "IPv4" ? "127.0.0.1" : "::1" };
}

function isLoopback(address: string, family: IPFamily): boolean {
  return address === "::1" || (family === "IPv4" && address.startsWith("127."));
}

class Tracer {
  readonly #walk: Walk;
  readonly #host: TraceHost;
  readonly #cameWith: number;

  constructor(walk: Walk, host: TraceHost) {
    this.#cameWith = walk.mark;
    this.#walk = walk;
    this.#host = host;
  }

  passHooks(isOwn: boolean): Fate {
    const walk = this.#walk;
    const first = this.#pass(isOwn ? "OUTPUT" : "PREROUTING");
    if (first !== "accept") return first;
    if (this.#isMartian(isOwn)) return this.#dropped("the kernel: loopback addresses stay on the host");
    const isForHost = this.#host.isLocal(walk.destination);
    if (!isOwn) {
      if (isForHost) return this.#pass("INPUT");
      const forwarded = this.#pass("FORWARD");
      return forwarded === "accept" ? this.#leave() : forwarded;
    }
    const sent = this.#leave();
    if (sent !== "accept" || !isForHost) return sent;
    walk.inputLink = LOOPBACK;
    const looped = this.#pass("PREROUTING", false);
    return looped === "accept" ? this.#pass("INPUT", false) : looped;
  }

  #leave(): Fate {
    const fate = this.#pass("POSTROUTING");
    if (fate !== "accept" || this.#walk.mark >>> 0 === (this.#cameWith | FOREIGN_BIT) >>> 0) return fate;
    return this.#dropped(`somebody beyond POSTROUTING: the mark is 0x${this.#walk.mark.toString(16)}`);
  }

  /** Loopback addresses come in by no link and leave by none, where nobody asked for it; in IPv6 never. */
  #isMartian(isOwn: boolean): boolean {
    const { source, destination, family } = this.#walk;
    if (family === "IPv4" && this.#host.routesLocalnet) return false;
    if (isOwn) return isLoopback(source, family) && !this.#host.isLocal(destination);
    return isLoopback(source, family) || isLoopback(destination, family);
  }

  #dropped(why: string): Fate {
    this.#walk.path.push(why);
    return "drop";
  }

  #pass(hook: Hook, withNat: boolean = true): Fate {
    const walk = this.#walk;
    // The link is that of the route when the hook is entered: a translation inside of OUTPUT doesn't change it.
    const isLeaving = hook === "OUTPUT" || hook === "FORWARD" || hook === "POSTROUTING";
    walk.outputLink = isLeaving ? (this.#host.isLocal(walk.destination) ? LOOPBACK : UPLINK) : "";
    if (hook === "OUTPUT" || hook === "POSTROUTING") walk.inputLink = "";
    for (const table of ORDER[hook]) {
      for (const { variant, tables } of this.#host.ruleSets) {
        const chains = tables.get(table);
        if (chains === undefined || (table === "nat" && (!withNat || walk.isTranslatedAt(hook)))) continue;
        walk.path.push(`${variant} ${table} ${hook}`);
        const fate = this.#runBuiltin(chains, hook);
        if (fate !== "accept") return fate;
      }
    }
    return "accept";
  }

  #runBuiltin(chains: Chains, hook: Hook): Fate {
    const fate = this.#runChain(chains, hook);
    return fate ?? (chains.get(hook)?.policy === "DROP" ? "drop" : "accept");
  }

  /** Undefined: the packet came out at the chain's end, or by RETURN. */
  #runChain(chains: Chains, name: string): Fate | undefined {
    for (const { rule } of chains.get(name)?.entries ?? []) {
      if (!isMatch(rule, this.#walk)) continue;
      this.#walk.path.push(`${name}: ${rule.text}`);
      const result = this.#act(chains, rule);
      if (result === "return") return undefined;
      if (result !== undefined) return result;
    }
    return undefined;
  }

  #act(chains: Chains, { chain, isGoto, target }: Rule): Fate | "return" | undefined {
    if (chain === undefined) return target?.run(this.#walk);
    const fate = this.#runChain(chains, chain);
    return fate ?? (isGoto === true ? "return" : undefined);
  }
}

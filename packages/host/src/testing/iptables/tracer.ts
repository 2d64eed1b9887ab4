import { hostPort } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import { UPLINK } from "@turnout/conformance";
import type { PacketEnds } from "../set-lookup.ts";
import { EXTERNAL_BIT } from "../external-mark.ts";
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
  readonly balance: Balance;
}

/**
 * What IPVS makes of the first packet of a connection: it sends it to a real server, or refuses it because there is none; undefined: it knows no
 * such virtual server.
 */
export type Balance = (packet: PacketEnds) => { readonly address: string; readonly port: number } | "reject" | undefined;

/** Tables of a hook before IPVS gets the packet, and after it. @source Linux net/netfilter/ipvs/ip_vs_core.c ip_vs_ops4 */
const BEFORE_IPVS = { INPUT: ["mangle", "filter", "security"], OUTPUT: ["raw", "mangle", "nat"] } as const;
const AFTER_IPVS = { INPUT: ["nat"], OUTPUT: ["filter", "security"] } as const;

type Fate = "accept" | "drop" | "reject";

/**
 * Follow the first packet of a connection through the tables, hook by hook, as the kernel would.
 *
 * Shape: what comes in by a link meets PREROUTING, then INPUT or FORWARD; what the host sends meets OUTPUT, and when it is for the host itself
 * PREROUTING and INPUT, too (without nat: that was done). All but INPUT lead to POSTROUTING. What IPVS sends to a real server elsewhere, from
 * INPUT or OUTPUT, begins OUTPUT anew, where nat knows the connection already; conntrack follows it (net.ipv4.vs.conntrack).
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
    return isOwn ? this.#send() : this.#receive();
  }

  #receive(): Fate {
    const walk = this.#walk;
    const first = this.#pass("PREROUTING");
    if (first !== "accept") return first;
    if (this.#isMartian(false)) return this.#dropped("the kernel: loopback addresses stay on the host");
    if (!this.#host.isLocal(walk.destination)) {
      const forwarded = this.#pass("FORWARD");
      return forwarded === "accept" ? this.#leave() : forwarded;
    }
    this.#enter("INPUT");
    const before = this.#passTables("INPUT", BEFORE_IPVS.INPUT);
    if (before !== "accept") return before;
    const balanced = this.#balance();
    if (balanced === undefined) return this.#passTables("INPUT", AFTER_IPVS.INPUT);
    // For a real server on this host it goes on as it came.
    if (balanced !== "accept" || this.#host.isLocal(walk.destination)) return balanced;
    const sent = this.#pass("OUTPUT");
    return sent === "accept" ? this.#leave() : sent;
  }

  #send(): Fate {
    const walk = this.#walk;
    this.#enter("OUTPUT");
    const before = this.#passTables("OUTPUT", BEFORE_IPVS.OUTPUT);
    if (before !== "accept") return before;
    const balanced = this.#balance();
    if (balanced !== undefined && balanced !== "accept") return balanced;
    const isSentAnew = balanced === "accept" && !this.#host.isLocal(walk.destination);
    const after = isSentAnew ? this.#pass("OUTPUT") : this.#passTables("OUTPUT", AFTER_IPVS.OUTPUT);
    if (after !== "accept") return after;
    if (this.#isMartian(true)) return this.#dropped("the kernel: loopback addresses stay on the host");
    const isForHost = this.#host.isLocal(walk.destination);
    const sent = this.#leave();
    if (sent !== "accept" || !isForHost) return sent;
    walk.inputLink = LOOPBACK;
    const looped = this.#pass("PREROUTING", false);
    return looped === "accept" ? this.#pass("INPUT", false) : looped;
  }

  /** Undefined: it is none of IPVS's. */
  #balance(): "accept" | "reject" | undefined {
    const walk = this.#walk;
    const answer = this.#host.balance(walk);
    if (answer === undefined) return undefined;
    walk.path.push(answer === "reject" ? "ipvs: no real server" : `ipvs: ${hostPort(answer.address, answer.port)}`);
    if (answer === "reject") return "reject";
    walk.balance(answer.address, answer.port);
    return "accept";
  }

  #leave(): Fate {
    const fate = this.#pass("POSTROUTING");
    if (fate !== "accept" || this.#walk.mark >>> 0 === (this.#cameWith | EXTERNAL_BIT) >>> 0) return fate;
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
    this.#enter(hook);
    return this.#passTables(hook, withNat ? ORDER[hook] : ORDER[hook].filter((table) => table !== "nat"));
  }

  /** The link is that of the route when the hook is entered: a translation inside of OUTPUT doesn't change it. */
  #enter(hook: Hook): void {
    const walk = this.#walk;
    const isLeaving = hook === "OUTPUT" || hook === "FORWARD" || hook === "POSTROUTING";
    walk.outputLink = isLeaving ? (this.#host.isLocal(walk.destination) ? LOOPBACK : UPLINK) : "";
    if (hook === "OUTPUT" || hook === "POSTROUTING") walk.inputLink = "";
  }

  #passTables(hook: Hook, order: readonly TableName[]): Fate {
    const walk = this.#walk;
    for (const table of order) {
      for (const { variant, tables } of this.#host.ruleSets) {
        const chains = tables.get(table);
        if (chains === undefined || (table === "nat" && walk.isTranslatedAt(hook))) continue;
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

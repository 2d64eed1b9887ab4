import { hostPort, invariant } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import { UPLINK } from "@turnout/conformance";
import { calledAt, inOrder } from "@turnout/host/nft";
import { evaluateChain } from "@turnout/host/rules";
import type { RunResult, ExternalTable, HookedPacket } from "@turnout/host/rules";
import { EXTERNAL_BIT } from "./external-mark.ts";
import type { PacketEnds } from "./set-lookup.ts";

/** What a trace needs to know of the host. */
export interface TraceHost {
  /** Those of the packet's family; of chains that the kernel calls together, the one that was made last is called first. */
  readonly tables: readonly ExternalTable[];
  /** Whether loopback addresses are routed like others (net.ipv4.conf.all.route_localnet). */
  readonly routesLocalnet: boolean;
  isLocal(address: string): boolean;
  /** In [0, 1). */
  random(): number;
  /** Default: there is no IPVS. */
  readonly balance?: Balance;
  /** What else rules of a table ask, or leave behind: sets, and lists of clients. */
  asked(table: ExternalTable): Partial<Pick<HookedPacket, "isInSet" | "recent" | "learn" | "priority">>;
}

/**
 * What IPVS makes of the first packet of a connection: it sends it to a real server, or refuses it because there is none; undefined: it knows no
 * such virtual server.
 */
export type Balance = (packet: PacketEnds) => { readonly address: string; readonly port: number } | "reject" | undefined;

type Fate = "accept" | "drop" | "reject";

const LOOPBACK = "lo";
/** The port that clients send from. */
const CLIENT_PORT = 40_000;
/** Where IPVS gets the packet. @source Linux net/netfilter/ipvs/ip_vs_core.c ip_vs_ops4 */
const IPVS_AT = { input: 98, output: -98 } as const;

/**
 * Follow the first packet of a connection through all tables, hook by hook, as the kernel would.
 *
 * Shape: what comes in by a link meets prerouting, then input or forward; what the host sends meets output, and when it is for the host itself
 * prerouting and input, too (without nat: that was done). All but input lead to postrouting. What IPVS sends to a real server elsewhere, from
 * input or output, begins output anew, where nat knows the connection already; conntrack follows it (net.ipv4.vs.conntrack).
 * Edges: there are no routes: everything that is not for an address of the host leaves by the uplink. Beyond postrouting another program drops what
 * bears another mark than its own.
 */
export function tracePacket(packet: Packet, host: TraceHost): Trace {
  return new Tracer(leaving(packet), host).trace(packet.link === "");
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
  readonly #host: TraceHost;
  readonly #cameWith: number;
  /** The way it took, for people. */
  readonly #path: string[] = [];
  #packet: HookedPacket & { readonly source: string; readonly destinationPort: number };

  constructor({ family, protocol, source, destination, port, link, mark = 0 }: Packet, host: TraceHost) {
    this.#cameWith = mark;
    this.#host = host;
    this.#packet = {
      family,
      protocol: protocol.toLowerCase(),
      source,
      destination,
      sourcePort: CLIENT_PORT,
      destinationPort: port,
      inDevice: link,
      outDevice: "",
      state: "new",
      isTranslated: false,
      isAnsweredThere: undefined,
      mark,
      virtual: "none",
      hasBridges: false,
      original: { source, destination, destinationPort: port },
      isLocal: (address) => host.isLocal(address),
      isInSet: () => undefined,
      random: () => host.random(),
    };
  }

  trace(isOwn: boolean): Trace {
    const fate = isOwn ? this.#send() : this.#receive();
    const path = this.#path;
    const { destination, destinationPort, isTranslated, isSourceTranslated = false } = this.#packet;
    if (fate !== "accept") return { is: fate, path };
    if (!isTranslated) return { is: "pass", path };
    return { is: "forward", endpoint: hostPort(destination, destinationPort), masquerade: isSourceTranslated, path };
  }

  get #isForHost(): boolean {
    return this.#host.isLocal(this.#packet.destination);
  }

  #receive(): Fate {
    const first = this.#pass("prerouting");
    if (first !== "accept") return first;
    if (this.#isMartian(false)) return this.#dropped("the kernel: loopback addresses stay on the host");
    if (!this.#isForHost) return this.#leave(this.#pass("forward"));
    const before = this.#pass("input", { until: IPVS_AT.input });
    const balanced = before === "accept" ? this.#balance() : before;
    if (balanced === undefined) return this.#pass("input", { from: IPVS_AT.input });
    // For a real server on this host it goes on as it came.
    return balanced !== "accept" || this.#isForHost ? balanced : this.#leave(this.#pass("output"));
  }

  #send(): Fate {
    const before = this.#pass("output", { until: IPVS_AT.output });
    const balanced = before === "accept" ? this.#balance() : before;
    if (balanced !== undefined && balanced !== "accept") return balanced;
    const isSentAnew = balanced === "accept" && !this.#isForHost;
    const after = isSentAnew ? this.#pass("output") : this.#pass("output", { from: IPVS_AT.output });
    if (after === "accept" && this.#isMartian(true)) return this.#dropped("the kernel: loopback addresses stay on the host");
    const isForHost = this.#isForHost;
    const sent = this.#leave(after);
    if (sent !== "accept" || !isForHost) return sent;
    this.#packet = { ...this.#packet, inDevice: LOOPBACK };
    const looped = this.#pass("prerouting", { withNat: false });
    return looped === "accept" ? this.#pass("input", { withNat: false }) : looped;
  }

  /** Undefined: it is none of IPVS's. */
  #balance(): "accept" | "reject" | undefined {
    const { protocol, source, destination, destinationPort: port } = this.#packet;
    const answer = this.#host.balance?.({ protocol, source, sourcePort: CLIENT_PORT, destination, port });
    if (answer === undefined) return undefined;
    this.#path.push(answer === "reject" ? "ipvs: no real server" : `ipvs: ${hostPort(answer.address, answer.port)}`);
    if (answer === "reject") return "reject";
    const virtual = { protocol, address: destination, port };
    this.#packet = { ...this.#packet, virtual, destination: answer.address, destinationPort: answer.port, isTranslated: true };
    return "accept";
  }

  #leave(before: Fate): Fate {
    const fate = before === "accept" ? this.#pass("postrouting") : before;
    const { mark } = this.#packet;
    if (fate !== "accept" || mark >>> 0 === (this.#cameWith | EXTERNAL_BIT) >>> 0) return fate;
    return this.#dropped(`another program beyond postrouting: the mark is 0x${(mark >>> 0).toString(16)}`);
  }

  /** Loopback addresses come in by no link and leave by none, unless the host routes them; in IPv6 never. */
  #isMartian(isOwn: boolean): boolean {
    const { source, family, destination } = this.#packet;
    if (family === "IPv4" && this.#host.routesLocalnet) return false;
    if (isOwn) return isLoopback(source, family) && !this.#isForHost;
    return isLoopback(source, family) || isLoopback(destination, family);
  }

  #dropped(why: string): Fate {
    this.#path.push(why);
    return "drop";
  }

  /** Pass a hook's chains, or those that are called between two priorities. */
  #pass(at: string, { withNat = true, from = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY }: Partial<Part> = {}): Fate {
    if (from === Number.NEGATIVE_INFINITY) this.#enter(at);
    const order = inOrder(at);
    const called = this.#host.tables
      .flatMap((table) =>
        [...table.chains.values()].flatMap((chain) => (chain.hook?.at === at ? [{ table, chain, hook: chain.hook }] : [])),
      )
      .filter(({ hook }) => calledAt(at, hook) >= from && calledAt(at, hook) < until)
      .toReversed()
      .toSorted((one, other) => order(one.hook, other.hook));
    for (const { table, chain, hook } of called) {
      // Where a hook's translation is decided, nat chains are asked no more.
      const { isTranslated, isSourceTranslated = false } = this.#packet;
      const isDecided = at === "postrouting" || at === "input" ? isSourceTranslated : isTranslated;
      if (hook.type === "nat" && (!withNat || isDecided)) continue;
      this.#path.push(`${at}: ${table.name} ${chain.name}`);
      const ran = evaluateChain(table, chain, { ...this.#packet, ...this.#host.asked(table) }, () => undefined);
      invariant(ran.isCertain, `rules of a fake can be judged: ${table.name} ${chain.name}`);
      this.#path.push(...ran.matched.map(({ chain: name, rule }) => `${name}: ${rule.text}`));
      this.#change(ran);
      if (ran.is !== "pass") return ran.is;
    }
    return "accept";
  }

  /** The link is that of the route when the hook is entered: a translation inside of output doesn't change it. */
  #enter(at: string): void {
    const isLeaving = at === "output" || at === "forward" || at === "postrouting";
    const outDevice = isLeaving ? (this.#isForHost ? LOOPBACK : UPLINK) : "";
    this.#packet = { ...this.#packet, outDevice, ...(at === "output" || at === "postrouting" ? { inDevice: "" } : {}) };
  }

  #change({ mark, destination, source }: RunResult): void {
    const { destination: before, destinationPort, source: from } = this.#packet;
    this.#packet = {
      ...this.#packet,
      mark,
      ...(destination === undefined
        ? {}
        : { destination: destination.address ?? before, destinationPort: destination.port ?? destinationPort, isTranslated: true }),
      // Masquerading takes an address of the host, whose it doesn't matter.
      ...(source === undefined ? {} : { source: source.address || from, isSourceTranslated: true }),
    };
  }
}

interface Part {
  readonly withNat: boolean;
  /** Priorities. */
  readonly from: number;
  readonly until: number;
}

import type { Protocol } from "@turnout/core/backend";

/** One direction of a flow. Addresses are 16 bytes as latin1, IPv4 as ::ffff:a.b.c.d. */
export interface Tuple {
  readonly protocol: Protocol;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly port: number;
}

/** A flow that conntrack knows: where its client sends to, and where answers come from. */
export interface TrackedFlow {
  readonly original: Tuple;
  /** Of the answers: an endpoint, to the address that it sees. */
  reply: Tuple;
  /** Of TCP, as in the kernel's enum tcp_conntrack. */
  tcpState: number;
  endsMs: number;
}

const PORTS = 65_536;
const FIRST_PORT = 1024;

/** Conntrack with its NAT, in memory. */
export class Conntrack {
  readonly #nowMs: () => number;
  readonly #flows = new Map<string, TrackedFlow>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Find the flow that a packet is of, in either direction. */
  find(tuple: Tuple): TrackedFlow | undefined {
    const key = keyOf(tuple);
    const flow = this.#flows.get(key);
    if (flow === undefined || flow.endsMs > this.#nowMs()) return flow;
    this.remove(flow);
    return undefined;
  }

  /** Begin a flow that nobody finds before {@link Conntrack.insert}. */
  begin(original: Tuple): TrackedFlow {
    return { original, reply: inverted(original), tcpState: 0, endsMs: this.#nowMs() };
  }

  /** Have a flow end at another destination. */
  setDestination(flow: TrackedFlow, address: string, port: number): void {
    flow.reply = { ...flow.reply, source: address, sourcePort: port };
  }

  /** Have a flow come from another address; its port stays unless another flow has that already. */
  setSource(flow: TrackedFlow, address: string): void {
    let reply: Tuple = { ...flow.reply, destination: address };
    for (let tries = 0; tries < PORTS && this.find(reply) !== undefined; tries += 1)
      reply = { ...reply, port: reply.port + 1 < PORTS ? reply.port + 1 : FIRST_PORT };
    flow.reply = reply;
  }

  /** Have a flow be found from now on, until so many ms have passed; false: there is one of the same addresses and ports. */
  insert(flow: TrackedFlow, timeoutMs: number): boolean {
    const keys = [keyOf(flow.original), keyOf(flow.reply)];
    if (this.find(flow.original) !== undefined || this.find(flow.reply) !== undefined) return false;
    flow.endsMs = this.#nowMs() + timeoutMs;
    for (const key of keys) this.#flows.set(key, flow);
    return true;
  }

  /** Forget a flow. */
  remove(flow: TrackedFlow): void {
    this.#flows.delete(keyOf(flow.original));
    this.#flows.delete(keyOf(flow.reply));
  }
}

/** The other direction, where nothing is rewritten. */
function inverted({ protocol, source, sourcePort, destination, port }: Tuple): Tuple {
  return { protocol, source: destination, sourcePort: port, destination: source, port: sourcePort };
}

function keyOf({ protocol, source, sourcePort, destination, port }: Tuple): string {
  return `${protocol} ${sourcePort} ${port} ${source}${destination}`;
}

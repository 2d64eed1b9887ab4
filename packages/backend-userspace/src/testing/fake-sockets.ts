import { hostPort } from "@turnout/core";
import type {
  ClientStream,
  DatagramEvents,
  DatagramFlow,
  DatagramPort,
  DialEvents,
  EndpointStream,
  Joined,
  JoinOptions,
  Listening,
  SocketAddress,
  Sockets,
} from "@turnout/client/sockets";

/** What a fake endpoint does with those that come. */
export type EndpointBehaviour = "answers" | "refuses" | "is silent";

/** A connection that a fake client has, seen from the client. */
export interface FakeClient {
  /** What became of it so far. */
  readonly state: "waiting" | "open" | "reset" | "closed";
  /** `ip:port` of every endpoint that was dialled for it, in order. */
  readonly dialled: readonly string[];
  /** What the endpoint was told first, by the PROXY protocol. */
  readonly head: Uint8Array | undefined;
  /** The endpoint's answer to the last dial. */
  answer(behaviour: EndpointBehaviour): void;
  /** Both sides are done. */
  close(): void;
}

interface EntryPoint {
  readonly at: SocketAddress;
  readonly onClient: (stream: ClientStream) => void;
  readonly onFailure: (error: Error) => void;
}

interface UdpListener {
  readonly at: SocketAddress;
  readonly onDatagram: (data: Uint8Array, from: SocketAddress) => void;
  readonly onFailure: (error: Error) => void;
  isRefusing: boolean;
}

/**
 * Sockets in memory, as strict as the kernel: an address has to be the host's, and a port is taken once.
 *
 * Shape: nothing happens by itself. Whoever plays client says when endpoints answer.
 */
export class FakeSockets implements Sockets {
  readonly #isLocal: (ip: string) => boolean;
  readonly #consumeFault: (ip: string) => "before" | "after" | undefined;
  readonly #tcp = new Map<string, EntryPoint>();
  readonly #udp = new Map<string, UdpListener>();
  /** The client that is being answered: who is dialled for is known by the call. */
  #current: Client | undefined;
  readonly #flows = new Set<Flow>();
  #sentTo: Flow | undefined;

  /** @param takeFault whether this opening at an address is to fail, without having been done or although it was */
  constructor(isLocal: (ip: string) => boolean, takeFault: (ip: string) => "before" | "after" | undefined = () => undefined) {
    this.#isLocal = isLocal;
    this.#consumeFault = takeFault;
  }

  /** Open sockets: `TCP ip:port`, `UDP ip:port` and, when everybody is refused there, `UDP ip:port refusing`; sorted. */
  get open(): readonly string[] {
    const udp = [...this.#udp].map(([key, { isRefusing }]) => `UDP ${key}${isRefusing ? " refusing" : ""}`);
    return [...[...this.#tcp.keys()].map((key) => `TCP ${key}`), ...udp].toSorted();
  }

  /** UDP sockets that are connected to endpoints. */
  get flows(): readonly Flow[] {
    return [...this.#flows];
  }

  /** Whether a socket is open. */
  has(flow: Flow): boolean {
    return this.#flows.has(flow);
  }

  /** Have a client connect; undefined: nobody listens there. */
  client(from: SocketAddress, at: SocketAddress): FakeClient | undefined {
    const entryPoint = this.#tcp.get(hostPort(at.ip, at.port));
    if (entryPoint === undefined) return undefined;
    const client = new Client(from, at);
    this.#during(client, () => entryPoint.onClient(client));
    return client;
  }

  /** Send a datagram: the endpoint it led to, `silence`, `refused`, or undefined when nobody listens there. */
  datagram(from: SocketAddress, at: SocketAddress, data: Uint8Array = new Uint8Array(1)): Flow | "silence" | "refused" | undefined {
    const entryPoint = this.#udp.get(hostPort(at.ip, at.port));
    if (entryPoint === undefined) return undefined;
    if (entryPoint.isRefusing) return "refused";
    this.#sentTo = undefined;
    entryPoint.onDatagram(data, from);
    return this.#sentTo ?? "silence";
  }

  /** A listener breaks by itself. */
  fail(at: SocketAddress, error: Error): void {
    const key = hostPort(at.ip, at.port);
    this.#tcp.get(key)?.onFailure(error);
    this.#udp.get(key)?.onFailure(error);
  }

  listen(at: SocketAddress, onClient: (stream: ClientStream) => void, onFailure: (error: Error) => void): Listening {
    return this.#open(this.#tcp, at, { at, onClient, onFailure });
  }

  dial(to: SocketAddress, timeoutMs: number, events: DialEvents): EndpointStream {
    const client = this.#current;
    if (client === undefined) throw new Error("nobody is being answered, so nobody is dialled for");
    return client.dial(to, timeoutMs, events, (run) => this.#during(client, run));
  }

  join(client: ClientStream, _endpoint: EndpointStream, options: JoinOptions): Joined {
    return (client as Client).join(options);
  }

  bind(at: SocketAddress, onDatagram: UdpListener["onDatagram"], onFailure: (error: Error) => void): DatagramPort {
    const entryPoint: UdpListener = { at, onDatagram, onFailure, isRefusing: false };
    return {
      ...this.#open(this.#udp, at, entryPoint),
      send: (_, to) => {
        for (const flow of this.#flows) if (flow.lastTo === undefined) flow.lastTo = to;
      },
      setRefusing: (isRefusing) => {
        entryPoint.isRefusing = isRefusing;
        return Promise.resolve();
      },
    };
  }

  connect(to: SocketAddress, events: DatagramEvents): DatagramFlow {
    const flow = new Flow(to, events);
    this.#flows.add(flow);
    return {
      send: (data) => {
        flow.sent.push(data);
        this.#sentTo = flow;
      },
      part: () => {
        flow.isParted = true;
      },
      close: () => void this.#flows.delete(flow),
    };
  }

  #open<D extends { readonly at: SocketAddress }>(entryPoints: Map<string, D>, at: SocketAddress, entryPoint: D): Listening {
    const key = hostPort(at.ip, at.port);
    const fault = this.#consumeFault(at.ip);
    const code = fault === "before" ? "ENOBUFS" : entryPoints.has(key) ? "EADDRINUSE" : this.#isLocal(at.ip) ? undefined : "EADDRNOTAVAIL";
    if (code === undefined) entryPoints.set(key, entryPoint);
    const failure = code ?? (fault === "after" ? "ENOBUFS" : undefined);
    return {
      opened:
        failure === undefined ? Promise.resolve() : Promise.reject(Object.assign(new Error(`listen ${failure} ${key}`), { code: failure })),
      close: () => void (entryPoints.get(key) === entryPoint && entryPoints.delete(key)),
    };
  }

  #during(client: Client, run: () => void): void {
    const before = this.#current;
    this.#current = client;
    run();
    this.#current = before;
  }
}

/** A UDP socket that is connected to an endpoint. */
export class Flow {
  /** `ip:port`. */
  readonly endpoint: string;
  readonly sent: Uint8Array[] = [];
  /** Open for late answers only: no client leads to it any more. */
  isParted = false;
  /** Where the last answer was sent to. */
  lastTo: SocketAddress | undefined;
  readonly #events: DatagramEvents;

  constructor(to: SocketAddress, events: DatagramEvents) {
    this.endpoint = hostPort(to.ip, to.port);
    this.#events = events;
  }

  /** The system has opened it. */
  open(): void {
    this.#events.onOpen();
  }

  /** The endpoint answers; says who was told. */
  answer(data: Uint8Array): SocketAddress | undefined {
    this.lastTo = undefined;
    this.#events.onDatagram(data);
    return this.lastTo;
  }

  /** The endpoint refuses. */
  fail(): void {
    this.#events.onFailure(new Error("ECONNREFUSED"));
  }
}

class Client implements ClientStream, FakeClient {
  readonly client: SocketAddress;
  readonly asked: SocketAddress;
  readonly dialled: string[] = [];
  head: Uint8Array | undefined;
  state: FakeClient["state"] = "waiting";
  #onClosed: (() => void) | undefined;
  #dial: { readonly events: DialEvents; readonly during: (run: () => void) => void } | undefined;
  #onOver: (() => void) | undefined;

  constructor(client: SocketAddress, asked: SocketAddress) {
    this.client = client;
    this.asked = asked;
  }

  onClosed(listener: () => void): void {
    this.#onClosed = listener;
  }

  reset(): void {
    this.#end("reset");
  }

  dial(to: SocketAddress, _timeoutMs: number, events: DialEvents, during: (run: () => void) => void): EndpointStream {
    this.dialled.push(hostPort(to.ip, to.port));
    const dial = { events, during };
    this.#dial = dial;
    return { abort: () => void (this.#dial === dial && (this.#dial = undefined)) };
  }

  join({ head, onOver }: JoinOptions): Joined {
    this.head = head;
    this.#onOver = onOver;
    return { reset: () => this.#end("reset") };
  }

  answer(behaviour: EndpointBehaviour): void {
    const dial = this.#dial;
    if (dial === undefined) return;
    this.#dial = undefined;
    dial.during(() => {
      if (behaviour === "answers") {
        this.state = "open";
        dial.events.onOpen();
      } else dial.events.onFailure(new Error(behaviour === "refuses" ? "ECONNREFUSED" : "no answer in time"));
    });
  }

  close(): void {
    this.#end("closed");
  }

  #end(state: "reset" | "closed"): void {
    if (this.state === "reset" || this.state === "closed") return;
    this.state = state;
    const [over, closed] = [this.#onOver, this.#onClosed];
    this.#onOver = undefined;
    this.#onClosed = undefined;
    over?.();
    closed?.();
  }
}

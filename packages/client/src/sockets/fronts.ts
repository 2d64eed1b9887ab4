import { objectId, ProxyError } from "@turnout/core";
import type { FlowFilter, Clock } from "@turnout/core";
import { policyOf } from "./decide.ts";
import type { Policy } from "./decide.ts";
import type { ListenerObject, ListenerValue } from "./listeners.ts";
import { TcpFront } from "./tcp-front.ts";
import type { Traffic } from "./traffic.ts";
import { UdpFront, UdpSessions } from "./udp-front.ts";

/** Does something now and then for as long as there is something to do; sleeps without a timer otherwise. */
class Sweeper {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #sweep: () => boolean;
  readonly #stop = new AbortController();
  #isRunning = false;

  /** @param sweep says whether something is left to sweep later */
  constructor(clock: Clock, everyMs: number, sweep: () => boolean) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#sweep = sweep;
  }

  /** There is something to do from now on. */
  wake(): void {
    if (this.#isRunning || this.#stop.signal.aborted) return;
    this.#isRunning = true;
    void this.#run();
  }

  /** Never sweep again. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    do await this.#clock.sleep(this.#everyMs, signal);
    while (!signal.aborted && this.#sweep());
    this.#isRunning = false;
  }
}

const KNOWN: Readonly<
  Record<string, { readonly code: "already_exists" | "permission_denied" | "tool_failed"; readonly what: string; readonly hint: string }>
> = {
  EADDRINUSE: {
    code: "already_exists",
    what: "another program has this port",
    hint: "find it with: ss -lnptu, and end it, or map another port",
  },
  EACCES: {
    code: "permission_denied",
    what: "this port may not be taken",
    hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE; map a higher one",
  },
  EPERM: {
    code: "permission_denied",
    what: "this port may not be taken",
    hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE; map a higher one",
  },
  EADDRNOTAVAIL: { code: "tool_failed", what: "the host has no such address", hint: "add the address to the host, or map to another one" },
  EMFILE: { code: "tool_failed", what: "this process may open no more sockets", hint: "raise the limit of open files: ulimit -n" },
};

/** Say why a socket can't be opened, in one line. Pure. */
function listenError(name: string, cause: unknown): ProxyError {
  const { code } = cause as { readonly code?: unknown };
  const known = typeof code === "string" ? KNOWN[code] : undefined;
  if (known === undefined) return ProxyError.from(cause, "tool_failed", "this port can't be opened", { object: `listener ${name}` });
  return new ProxyError(known.code, known.what, { object: `listener ${name}`, hint: known.hint, cause });
}

const SWEEP_MIN_MS = 50;
const SWEEP_MAX_MS = 15_000;

/** A socket in use, and the policies that share it: a row's own address beats a node port. */
interface Seat {
  readonly front: TcpFront | UdpFront;
  listener?: Policy;
  "node-port"?: Policy;
}

/** All sockets of a family that clients are answered on, by transport, address and port. */
export class Fronts {
  readonly sessions: UdpSessions;
  readonly #traffic: Traffic;
  readonly #onLost: (id: string) => void;
  readonly #seats = new Map<string, Seat>();
  /** Closed, with connections that go on. */
  readonly #draining = new Map<string, Set<TcpFront | UdpFront>>();
  /** What rows may send clients to, by their listeners. */
  readonly #rows = new Map<string, Map<string, Policy>>();
  readonly #sweeper: Sweeper;

  /** @param onLost told the ids of objects whose socket failed by itself; they are no longer here then */
  constructor(traffic: Traffic, onLost: (id: string) => void) {
    this.#traffic = traffic;
    this.#onLost = onLost;
    this.sessions = new UdpSessions(traffic);
    const { options, world } = traffic;
    const shortest = Math.min(...[options.udpIdleSeconds, options.drainSeconds].filter((seconds) => seconds > 0)) * 1000;
    const everyMs = Math.min(SWEEP_MAX_MS, Math.max(SWEEP_MIN_MS, shortest / 4));
    this.#sweeper = new Sweeper(world.clock, everyMs, () => this.#sweep());
  }

  /** TCP connections that are open or being opened. */
  get connections(): number {
    let count = 0;
    for (const { front } of this.#seats.values()) count += front.size;
    for (const fronts of this.#draining.values()) for (const front of fronts) count += front.size;
    return count;
  }

  /** Answer by this object from now on; resolves to why that can't be. */
  async put(object: ListenerObject): Promise<ProxyError | undefined> {
    const policy = policyOf(object.value);
    const seat = this.#seats.get(object.key) ?? (await this.#open(object, policy));
    if (!("front" in seat)) return seat;
    seat[object.kind] = policy;
    try {
      await seat.front.setPolicy(seat.listener ?? seat["node-port"] ?? policy);
    } catch (error) {
      this.#lose(object.key, error);
      return listenError(object.key, error);
    }
    this.#note(object, policy);
    this.#sweeper.wake();
    return undefined;
  }

  /** Answer by this object no longer. Connections that are open go on; see {@link Fronts.isDrained}. */
  async remove(object: ListenerObject): Promise<void> {
    const seat = this.#seats.get(object.key);
    this.#forgetRow(object);
    if (seat === undefined) return;
    delete seat[object.kind];
    const left = seat.listener ?? seat["node-port"];
    if (left !== undefined) {
      try {
        return await seat.front.setPolicy(left);
      } catch (error) {
        return this.#lose(object.key, error);
      }
    }
    this.#seats.delete(object.key);
    this.#close(object.key, seat.front);
  }

  /** Whether nothing is left of the sockets that were closed here. */
  isDrained(key: string): boolean {
    const fronts = this.#draining.get(key);
    for (const front of fronts ?? []) if (front.size === 0) fronts?.delete(front);
    if (fronts?.size === 0) this.#draining.delete(key);
    return !this.#draining.has(key);
  }

  /** What was answered by sockets that are closed and have connections yet. */
  draining(): readonly ListenerObject[] {
    return [...this.#draining.keys()]
      .filter((key) => !this.isDrained(key))
      .flatMap((key) => [...(this.#draining.get(key) ?? [])].map(({ policy: { value } }) => listenerOf(key, value)));
  }

  /** Whether closed sockets at an address have connections yet. */
  isAddressInUse(ip: string): boolean {
    for (const [key, fronts] of this.#draining)
      for (const front of fronts) if (front.policy.value.ip === ip && !this.isDrained(key)) return true;
    return false;
  }

  /** End the UDP sessions that filters name; resolves to how many. */
  forget(filters: readonly FlowFilter[]): number {
    return this.sessions.forget(filters);
  }

  /** Answer nobody any more; what is open goes on. */
  closeAll(): void {
    for (const [key, { front }] of this.#seats) this.#close(key, front);
    this.#seats.clear();
    this.#rows.clear();
  }

  /** Cut what is still open, and stop everything. */
  cutAll(): void {
    this.closeAll();
    this.#sweeper.stop();
    for (const fronts of this.#draining.values()) for (const front of fronts) front.cut(Number.POSITIVE_INFINITY);
    this.#draining.clear();
  }

  /** Let go of affine clients whose endpoints a row no longer has, once all that changed is in force. */
  retainAffinity(rows: Iterable<string>): void {
    for (const row of rows) {
      const policies = [...(this.#rows.get(row)?.values() ?? [])];
      this.#traffic.affinity.retain(row, new Set(policies.flatMap(({ endpoints }) => [...endpoints])));
    }
  }

  async #open(object: ListenerObject, policy: Policy): Promise<Seat | ProxyError> {
    const { key, value } = object;
    const at = { ip: value.ip, port: value.port };
    this.#traffic.shared.own.add(value.transport, at);
    const onLost = (error: Error): void => this.#lose(key, error);
    const front =
      value.transport === "TCP"
        ? new TcpFront(at, policy, this.#traffic, onLost)
        : new UdpFront(at, policy, this.#traffic, this.sessions, onLost);
    try {
      await front.opened;
    } catch (error) {
      this.#shut(front);
      return listenError(key, error);
    }
    const seat: Seat = { front };
    this.#seats.set(key, seat);
    return seat;
  }

  #shut(front: TcpFront | UdpFront): void {
    const { value } = front.policy;
    this.#traffic.shared.own.delete(value.transport, value);
    front.close();
  }

  #close(key: string, front: TcpFront | UdpFront): void {
    this.#shut(front);
    if (front.size === 0) return;
    const fronts = this.#draining.get(key) ?? new Set();
    fronts.add(front);
    this.#draining.set(key, fronts);
  }

  /** A socket failed by itself: its objects are gone from the host. */
  #lose(key: string, error: unknown): void {
    const seat = this.#seats.get(key);
    if (seat === undefined) return;
    this.#traffic.world.log.warn("a listener failed, opening it again", { listener: key, error: listenError(key, error).message });
    this.#seats.delete(key);
    this.#close(key, seat.front);
    for (const kind of ["listener", "node-port"] as const) if (seat[kind] !== undefined) this.#onLost(`${kind} ${key}`);
  }

  #note(object: ListenerObject, policy: Policy): void {
    this.#forgetRow(object);
    const { row } = object.value;
    const ofRow = this.#rows.get(row) ?? new Map<string, Policy>();
    ofRow.set(objectId(object), policy);
    this.#rows.set(row, ofRow);
  }

  #forgetRow(object: ListenerObject): void {
    const { row } = object.value;
    const ofRow = this.#rows.get(row);
    ofRow?.delete(objectId(object));
    if (ofRow?.size === 0) this.#rows.delete(row);
  }

  /** Says whether it has to be done again. */
  #sweep(): boolean {
    const { options, affinity } = this.#traffic;
    const nowMs = this.#traffic.nowMs();
    this.sessions.sweep(options.udpIdleSeconds * 1000);
    affinity.sweep();
    for (const key of this.#draining.keys()) this.isDrained(key);
    if (options.drainSeconds > 0) {
      const beforeMs = nowMs - options.drainSeconds * 1000;
      for (const { front } of this.#seats.values()) front.cut(beforeMs);
      for (const fronts of this.#draining.values()) for (const front of fronts) front.cut(beforeMs);
    }
    return this.#seats.size + this.#draining.size > 0;
  }
}

/** The object that a socket was opened for: a node port is the one whose row names no address. */
function listenerOf(key: string, value: ListenerValue): ListenerObject {
  return { kind: value.asked.address === "" ? "node-port" : "listener", key, value };
}

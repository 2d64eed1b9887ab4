import type { IPFamily } from "@turnout/core";

/**
 * What became of one attempt to reach a server. Rejected and dropped are told apart:
 * `refused` is an answer (a TCP reset to the SYN, or an ICMP port unreachable), `timeout` is silence.
 * - `reset`: the connection was up and then reset; `closed`: it was closed before the answer;
 * - `unreachable`: ICMP host or network unreachable, prohibited, or no route.
 */
export type Outcome = "ok" | "refused" | "timeout" | "reset" | "closed" | "unreachable";

/** How an attempt is made or a server serves. `HTTP` keeps its connections alive. */
export type Transport = "TCP" | "UDP" | "HTTP" | "SCTP";

/** What a server answers: who it is and whom it saw. */
export interface ServerReply {
  readonly server: string;
  /** The client's address as the server saw it, canonical, and its port. */
  readonly client: string;
  readonly clientPort: number;
  readonly family: IPFamily;
}

/** One attempt; the answer's fields are there when `outcome` is `ok`. */
export interface Attempt extends Partial<ServerReply> {
  readonly outcome: Outcome;
  readonly latencyMs: number;
  readonly localAddress?: string;
  readonly localPort?: number;
}

/** Start a server. Without `address` it listens on every address of both families. */
export interface ServeRequest {
  readonly name: string;
  readonly transport: Transport;
  readonly port: number;
  readonly address?: string;
}

/** End a server, named as it was started. `drain` only stops accepting (open connections go on); `reset` also resets what is open. */
export interface StopRequest {
  readonly transport: Transport;
  readonly port: number;
  readonly address?: string;
  readonly how: "drain" | "reset";
}

/** Whom to reach and how. Ports 1–65535; `fromPort` fixed means the same flow again. */
export interface TargetRequest {
  readonly address: string;
  readonly port: number;
  /** Default TCP. */
  readonly transport?: Transport;
  readonly fromAddress?: string;
  readonly fromPort?: number;
  /** Default 2,000. */
  readonly timeoutMs?: number;
}

/** Many attempts: `count` in all, `concurrency` at a time (default 8). */
export interface BurstRequest extends TargetRequest {
  readonly count: number;
  readonly concurrency?: number;
}

/** Attempts until told to stop; `pauseMs` between two of one worker (default 2). */
export interface LoadRequest extends TargetRequest {
  readonly concurrency?: number;
  readonly pauseMs?: number;
}

/** Sum of many attempts. */
export interface Tally {
  readonly attempts: number;
  readonly ok: number;
  readonly failed: Readonly<Partial<Record<Outcome, number>>>;
  /** Answers per server and per client address seen. */
  readonly servers: Readonly<Record<string, number>>;
  readonly clients: Readonly<Record<string, number>>;
  /** Of the successful ones; 0 when there are none. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Keep one TCP connection or connected UDP socket open, and ask over it every `everyMs`. */
export interface HoldRequest extends TargetRequest {
  readonly everyMs: number;
}

/** How a held connection is doing. `late` counts questions not answered before the next was due; a UDP socket that the kernel has ended is `reset`. */
export interface HoldStatus {
  readonly state: "open" | "closed" | "reset";
  readonly asks: number;
  readonly answers: number;
  readonly late: number;
  readonly server: string;
  /** The client's address as the server saw it last, canonical. */
  readonly client: string;
}

/** Which of this place's TCP servers gets a rival, who sends its client a segment that is outside of the connection's window. IPv4 alone. */
export interface StrayRequest {
  /** This place's own. */
  readonly address: string;
  readonly port: number;
  /** How long to wait for data of a client; default 2,000. */
  readonly timeoutMs?: number;
}

/** One HTTP GET, for health and metrics endpoints. */
export interface GetRequest {
  readonly address: string;
  readonly port: number;
  readonly path: string;
  readonly timeoutMs?: number;
}

/** What it gave; `status` 0 with an outcome other than ok when there was no HTTP answer. */
export interface GetResult {
  readonly outcome: Outcome;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What an agent does in its namespace; the same calls on both ends of the pipe. */
export interface AgentCalls {
  /** Serve until stopped. Fails when the port is taken. */
  serve(request: ServeRequest): Promise<void>;
  stop(request: StopRequest): Promise<void>;
  /** One attempt: a new connection, or one datagram and its answer. */
  attempt(request: TargetRequest): Promise<Attempt>;
  burst(request: BurstRequest): Promise<Tally>;
  /** Start attempts without end; gives a handle. */
  startLoad(request: LoadRequest): Promise<number>;
  stopLoad(handle: number): Promise<Tally>;
  /** How a load is doing, without stopping it. */
  peekLoad(handle: number): Promise<Tally>;
  /** Open and keep a connection; fails when it can't be opened. A UDP socket is open when the first answer has come. */
  hold(request: HoldRequest): Promise<number>;
  holdStatus(handle: number): Promise<HoldStatus>;
  release(handle: number): Promise<HoldStatus>;
  get(request: GetRequest): Promise<GetResult>;
  /** Once data comes to a server, send its client a segment that no window takes. */
  sendStray(request: StrayRequest): Promise<void>;
}

/** Names of the calls, for the two ends to wire themselves up. */
export const AGENT_CALLS: readonly (keyof AgentCalls)[] = [
  "serve",
  "stop",
  "attempt",
  "burst",
  "startLoad",
  "stopLoad",
  "peekLoad",
  "hold",
  "holdStatus",
  "release",
  "get",
  "sendStray",
];

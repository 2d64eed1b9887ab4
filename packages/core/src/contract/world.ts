/** Time, passed in so that tests own it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  nowMs(): number;
  /** Resolve after `ms`, or at once when `signal` aborts (never rejects). */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Structured log lines; `fields` are plain data. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** How one command is run. */
export interface ExecOptions {
  readonly input?: string;
  /** Default 60,000. */
  readonly timeoutMs?: number;
  /** stdout above this many bytes fails the run; default 1 GiB. */
  readonly maxOutputBytes?: number;
  readonly signal?: AbortSignal;
}

/** What a finished command left. */
export interface ExecResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A child that is kept and fed lines. */
export interface ExecSession {
  /** Write text to its stdin. Never throws: a dead child shows in {@link ExecSession.read}. */
  write(text: string): void;
  /**
   * Wait until stdout and stderr together hold `marker`, and take everything up to and including it.
   * @throws {ProxyError} `tool_failed` when the child ended, `timed_out`.
   */
  readUntil(marker: string, timeoutMs: number): Promise<string>;
  readonly pid: number | undefined;
  close(): void;
}

/** The way to other programs. No shell is ever involved. */
export interface Exec {
  /** Run to the end. A non-zero exit is a result, not an error. @throws {ProxyError} `tool_missing`, `permission_denied`, `timed_out`, `canceled`. */
  run(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Start and keep. @throws {ProxyError} never; a failed start shows in the first read. */
  open(file: string, args: readonly string[]): ExecSession;
}

/** Which conntrack entries to delete: those of `protocol` whose original destination is `address:port` and whose reply source is not in `keep`. */
export interface FlowFilter {
  readonly protocol: "UDP";
  /** Original destination; "" stands for any local address (node ports). */
  readonly address: string;
  readonly port: number;
  /** `ip:port` ([ip]:port for IPv6) of endpoints whose flows stay; any other flow to this destination goes. */
  readonly keep: readonly string[];
  /** When present only flows answered by one of these (`ip:port`) go: used where the destination itself isn't ours to judge. */
  readonly only?: readonly string[];
}

/** Addresses and links of the host. */
export interface HostAddress {
  readonly ip: string;
  readonly prefixLength: number;
  readonly link: string;
}

/** Somebody changed the nf_tables ruleset; or the kernel told more than could be kept, and anything may have changed. */
export type NftEvent =
  | {
      readonly kind: "commit";
      readonly generation: number;
      /** Who committed, as numbered in the initial pid namespace; 0 when the kernel does not say. */
      readonly pid: number;
      /** Its name, e.g. `nft`. */
      readonly process: string;
      /** Tables touched, as nft names them, e.g. `ip turnout`. */
      readonly tables: readonly string[];
    }
  | { readonly kind: "lost" };

/** The way to the kernel. */
export interface Netlink {
  /** All addresses of one family on this host (network namespace). */
  addresses(family: "IPv4" | "IPv6"): Promise<readonly HostAddress[]>;
  /** Delete the matching conntrack entries; resolves to how many went. None goes that was not seen before `signal` aborted. */
  deleteFlows(family: "IPv4" | "IPv6", flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  /** The nf_tables ruleset generation: changes whenever anybody commits. */
  nftGeneration(): Promise<number>;
  /** Follow changes to the nf_tables ruleset, whoever makes them; subscribed when this returns, ends on abort. */
  watchNft(signal: AbortSignal): AsyncIterable<NftEvent>;
  /** Follow changes to the host's addresses; any number of changes since the last look is one. */
  watchAddresses(signal: AbortSignal): AsyncIterable<void>;
}

/** What a backend may touch; everything in it has a fake. */
export interface World {
  readonly exec: Exec;
  readonly netlink: Netlink;
  readonly clock: Clock;
  readonly log: Log;
}

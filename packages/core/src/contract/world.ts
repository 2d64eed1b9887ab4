/** Time, passed in so that tests own it. */
export interface Clock {
  /**
   * Milliseconds by a clock that is never set: intervals and deadlines are measured with it. It began with the wall clock's time, which may have been set
   * since. Times for others are {@link wallMs}.
   */
  nowMs(): number;
  /** How far the host's wall clock is ahead of `nowMs` now; it may be set at any time. Absent: `nowMs` is the wall clock. */
  aheadMs?(): number;
  /**
   * CPU time of this process so far, in ms, with fractions: what work costs is measured with it, because on a busy machine the clock goes on while
   * another process has the CPU. Absent: by `nowMs`.
   */
  cpuMs?(): number;
  /** Resolve after `ms`, or at once when `signal` aborts (never rejects). */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** What has been spent so far, in ms: two of these tell what the work between them cost, by CPU time where the clock knows it. */
export function workMs(clock: Clock): number {
  return clock.cpuMs?.() ?? clock.nowMs();
}

/** A clock for those who only read it. */
export type ClockReading = Pick<Clock, "nowMs" | "aheadMs">;

/**
 * Give a moment of `nowMs` (default: the present) in ms since the epoch, as the wall clock is set now. For what leaves the process, when it leaves: metrics, events,
 * health, status; and to compare with other machines' times.
 */
export function wallMs(clock: ClockReading, atMs: number = clock.nowMs()): number {
  return atMs + (clock.aheadMs?.() ?? 0);
}

/** Structured log lines; `fields` are plain data. */
export interface Log {
  /** For whoever looks into a problem. */
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** What an operator may want to know. */
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Something is not as it should be, and work goes on. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Something failed. */
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** How one command is run. */
export interface ExecOptions {
  /** Written to its stdin, which is then closed; default: nothing. */
  readonly input?: string;
  /** What the input says, as data: for programs in memory, which read that instead of the text. */
  readonly data?: unknown;
  /** The child is killed after this long, default 60,000. */
  readonly timeoutMs?: number;
  /** stdout above this many bytes fails the run; default 1 GiB. */
  readonly maxOutputBytes?: number;
  /** Kills the child when it aborts. */
  readonly signal?: AbortSignal;
}

/** What a finished command left. */
export interface ExecResult {
  /** Its exit code; 0 is success. */
  readonly code: number;
  /** As UTF-8 text. */
  readonly stdout: string;
  /** As UTF-8 text. */
  readonly stderr: string;
  /** The signal that ended it, e.g. `SIGSEGV`; absent: it ended by itself. */
  readonly signal?: string;
}

/** How a command that has started is given its input and waited for. */
export type FinishOptions = Pick<ExecOptions, "timeoutMs" | "signal" | "data">;

/** A command that was started before its input is known: what its start takes is over when it is needed. */
export interface StartedCommand {
  /** Write its input, close that, and wait for its end, as {@link Exec.run} does; a failed start shows here. Once: it has one input. */
  finish(input: string, options?: FinishOptions): Promise<ExecResult>;
  /** Undefined: it did not start. */
  readonly pid: number | undefined;
  /** End it, whatever it does. Who waits for it is told `canceled`. */
  close(): void;
}

/** The way to other programs. No shell is ever involved. */
export interface Exec {
  /** Run to the end. A non-zero exit is a result, not an error. @throws {ProxyError} `tool_missing`, `permission_denied`, `timed_out`, `canceled`. */
  run(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Start what is told its input later. @throws {ProxyError} never; a failed start shows in {@link StartedCommand.finish}. */
  open(file: string, args: readonly string[]): StartedCommand;
}

/** Which conntrack entries to delete: those of `protocol` whose original destination is `address:port` and whose reply source is not in `keep`. */
export interface FlowFilter {
  /** Only UDP flows outlive their endpoint unnoticed. */
  readonly protocol: "UDP";
  /** Original destination, canonical; "" stands for any local address (node ports). */
  readonly address: string;
  /** Of the original destination, 1 to 65535. */
  readonly port: number;
  /** `ip:port` (canonical; [ip]:port for IPv6) of endpoints whose flows stay; any other flow to this destination goes. */
  readonly keep: readonly string[];
  /** When present only flows answered by one of these (`ip:port`) go: used where the destination itself isn't ours to judge. */
  readonly only?: readonly string[];
}

/**
 * What every backend may touch; everything in it has a fake. A backend that touches more makes its own world of it, see
 * {@link BackendModule.createWorld}.
 */
export interface World {
  /** Programs of this host. */
  readonly exec: Exec;
  /** The only time there is: sleep and look at the clock by it. */
  readonly clock: Clock;
  /** Where operators read. */
  readonly log: Log;
}

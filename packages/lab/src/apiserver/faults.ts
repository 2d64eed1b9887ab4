import type { ServedKind } from "./resources.ts";

/** What a request does. */
export type Verb = "list" | "watch" | "get" | "write";

/**
 * What comes in the place of a watch-list.
 * - a number: this HTTP status; 422 is that of servers without watch-list;
 * - `silent`, `ends`, `cut`: the objects without the bookmark that ends them, and then nothing, the end of the answer, or a broken connection;
 * - `unmarked`: an ordinary watch, whose bookmarks end nothing;
 * - `list`, `page`: a list, or HTML, with status 200.
 */
export type WatchListFault = number | "silent" | "ends" | "cut" | "unmarked" | "list" | "page";

/** One way to misbehave; give one fault per call, narrowed by `only` and `times`. */
export interface Misbehaviour {
  /** Which requests (or, for stream faults, which watches); all when absent. */
  readonly only?: { readonly verb?: Verb; readonly kind?: ServedKind };
  /** How often it strikes before it is over; until stopped when absent. */
  readonly times?: number;
  /** Answer this many ms later. */
  readonly delayMs?: number;
  /** Take requests and never answer; watches that are open go silent for good. */
  readonly hang?: boolean;
  /** Answer with this HTTP status and a matching Status body. */
  readonly status?: number;
  /** Retry-After that goes with a status. */
  readonly retryAfterSeconds?: number;
  /** Answer a watch with sendInitialEvents otherwise than by the objects and their end. */
  readonly watchList?: WatchListFault;
  /** Answer any continue token with 410. */
  readonly expireContinue?: boolean;
  /** Answer a watch from a compacted revision with HTTP 410 instead of an ERROR event. */
  readonly expiredAsStatus?: boolean;
  /** Close the body in the middle of a list. */
  readonly truncateLists?: boolean;
  /** Send every watch event twice. */
  readonly duplicateEvents?: boolean;
  /** Send half of the next watch event and close the connection. */
  readonly truncateEvents?: boolean;
}

/** Names of the faults proper. */
export type FaultName = Exclude<keyof Misbehaviour, "only" | "times" | "retryAfterSeconds">;

interface ActiveFault {
  readonly what: Misbehaviour;
  timesLeft: number;
}

/** The misbehaviours in force. */
export class Faults {
  #active: ActiveFault[] = [];

  /** Start misbehaving. Returns the way to stop. */
  add(what: Misbehaviour): () => void {
    const fault = { what, timesLeft: what.times ?? Infinity };
    this.#active.push(fault);
    return () => {
      this.#active = this.#active.filter((other) => other !== fault);
    };
  }

  /** Behave again. */
  clear(): void {
    this.#active = [];
  }

  /** Let a fault strike, if one is in force for this kind of request; the newest wins. */
  strike(name: FaultName, verb: Verb, kind: ServedKind): Misbehaviour | undefined {
    const fault = this.#active.findLast(({ what }) => what[name] !== undefined && fits(what, verb, kind));
    if (fault === undefined) return undefined;
    fault.timesLeft--;
    if (fault.timesLeft <= 0) this.#active = this.#active.filter((other) => other !== fault);
    return fault.what;
  }
}

/** Tell whether a misbehaviour is about such requests. Never throws. */
export function fits(what: Misbehaviour, verb: Verb, kind: ServedKind): boolean {
  const { only } = what;
  return (only?.verb === undefined || only.verb === verb) && (only?.kind === undefined || only.kind === kind);
}

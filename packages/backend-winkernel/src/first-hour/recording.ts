import { ProxyError } from "@turnout/core/backend";
import { HnsError } from "../hns/error.ts";
import type { HnsHost } from "../hns/host.ts";

/** What HNS is asked by its name, without waiting for its end. */
export type HnsCall = Exclude<keyof HnsHost, "close">;
/** What a call answers: of a list one text for each, of a removal nothing. */
type Answer = string | readonly string[] | undefined;

const CALLS: Readonly<Record<HnsCall, true>> = {
  version: true,
  list: true,
  createEndpoint: true,
  createLoadBalancer: true,
  modifyLoadBalancer: true,
  remove: true,
};

/** One call of HNS, and what became of it. */
export interface RecordedCall {
  readonly call: HnsCall;
  /** What it was asked, without the signal. */
  readonly asked: readonly string[];
  /** Absent: it failed, or answers nothing. */
  readonly answer?: Answer;
  readonly failed?: { readonly hresult: number; readonly detail: string };
  readonly ms: number;
}

/** Make an HNS of which one function answers every call. */
export function hnsOf(
  answer: (call: HnsCall, asked: readonly string[], signal: AbortSignal) => Promise<Answer>,
  close: HnsHost["close"],
): HnsHost {
  const calls = (Object.keys(CALLS) as HnsCall[]).map((call) => [
    call,
    (...args: readonly unknown[]) => answer(call, args.slice(0, -1) as readonly string[], args.at(-1) as AbortSignal),
  ]);
  return { ...(Object.fromEntries(calls) as Omit<HnsHost, "close">), close };
}

/** Read a recording: a line of JSON for each call. @throws {SyntaxError} for a line that is none. */
export function parseRecording(text: string): readonly RecordedCall[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as RecordedCall);
}

/** Hand every call to another HNS, and tell what became of it. */
export function recordingHns(hns: HnsHost, nowMs: () => number, notify: (call: RecordedCall) => void): HnsHost {
  return hnsOf(
    async (call, asked, signal) => {
      const startMs = nowMs();
      try {
        const answer = await (hns[call] as (...args: readonly unknown[]) => Promise<Answer>).call(hns, ...asked, signal);
        notify({ call, asked, ...(answer === undefined ? {} : { answer }), ms: nowMs() - startMs });
        return answer;
      } catch (error) {
        if (error instanceof HnsError)
          notify({ call, asked, failed: { hresult: error.hresult, detail: error.detail }, ms: nowMs() - startMs });
        throw error;
      }
    },
    (signal) => hns.close(signal),
  );
}

/**
 * Make an HNS that answers as a recorded one did.
 *
 * Edges: it knows no other calls than those that were recorded, in their order; the first other one fails, as HNS would have answered it nobody knows.
 */
export function replayedHns(calls: readonly RecordedCall[]): HnsHost {
  let next = 0;
  return hnsOf(
    async (call, asked) => {
      const recorded = calls[next++];
      if (recorded === undefined || JSON.stringify([recorded.call, recorded.asked]) !== JSON.stringify([call, asked])) {
        const was = recorded === undefined ? "the recording ends there" : `${recorded.call} ${recorded.asked.join(" ")} was recorded`;
        throw new ProxyError("not_found", `call ${next} is ${call} ${asked.join(" ")}, and ${was}`, { object: "recording of HNS" });
      }
      if (recorded.failed !== undefined) throw new HnsError(recorded.failed.hresult, recorded.failed.detail);
      return recorded.answer;
    },
    () => Promise.resolve(),
  );
}

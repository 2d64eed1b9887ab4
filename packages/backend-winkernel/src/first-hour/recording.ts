import { HnsError } from "../hns/error.ts";
import type { HnsHost, HnsKind, OwnKind } from "../hns/host.ts";

/** One call of HNS, and what became of it. */
export interface RecordedCall {
  readonly call: Exclude<keyof HnsHost, "close">;
  /** What it was asked, without the signal. */
  readonly asked: readonly string[];
  /** What it answered: of a list one text for each. Absent: it failed, or answers nothing. */
  readonly answer?: string | readonly string[];
  readonly failed?: { readonly hresult: number; readonly detail: string };
  readonly ms: number;
}

/** Read a recording: a line of JSON for each call. @throws {SyntaxError} for a line that is none. */
export function parseRecording(text: string): readonly RecordedCall[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as RecordedCall);
}

/** Hands every call to another HNS, and tells what became of it. */
export class RecordingHns implements HnsHost {
  readonly #hns: HnsHost;
  readonly #nowMs: () => number;
  readonly #notify: (call: RecordedCall) => void;

  constructor(hns: HnsHost, nowMs: () => number, notify: (call: RecordedCall) => void) {
    this.#hns = hns;
    this.#nowMs = nowMs;
    this.#notify = notify;
  }

  version(signal: AbortSignal): Promise<string> {
    return this.#reported("version", [], () => this.#hns.version(signal));
  }

  list(kind: HnsKind, signal: AbortSignal): Promise<readonly string[]> {
    return this.#reported("list", [kind], () => this.#hns.list(kind, signal));
  }

  createEndpoint(networkId: string, settings: string, signal: AbortSignal): Promise<string> {
    return this.#reported("createEndpoint", [networkId, settings], () => this.#hns.createEndpoint(networkId, settings, signal));
  }

  createLoadBalancer(settings: string, signal: AbortSignal): Promise<string> {
    return this.#reported("createLoadBalancer", [settings], () => this.#hns.createLoadBalancer(settings, signal));
  }

  modifyLoadBalancer(id: string, settings: string, signal: AbortSignal): Promise<string> {
    return this.#reported("modifyLoadBalancer", [id, settings], () => this.#hns.modifyLoadBalancer(id, settings, signal));
  }

  remove(kind: OwnKind, id: string, signal: AbortSignal): Promise<void> {
    return this.#reported("remove", [kind, id], () => this.#hns.remove(kind, id, signal));
  }

  close(signal: AbortSignal): Promise<void> {
    return this.#hns.close(signal);
  }

  async #reported<T>(call: RecordedCall["call"], asked: RecordedCall["asked"], work: () => Promise<T>): Promise<T> {
    const startMs = this.#nowMs();
    try {
      const answer = await work();
      const given = answer as string | readonly string[] | undefined;
      this.#notify({ call, asked, ...(given === undefined ? {} : { answer: given }), ms: this.#nowMs() - startMs });
      return answer;
    } catch (error) {
      if (error instanceof HnsError) {
        const failed = { hresult: error.hresult, detail: error.detail };
        this.#notify({ call, asked, failed, ms: this.#nowMs() - startMs });
      }
      throw error;
    }
  }
}

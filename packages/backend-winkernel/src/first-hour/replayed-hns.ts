import { ProxyError } from "@turnout/core/backend";
import { HnsError } from "../hns/error.ts";
import type { HnsHost, HnsKind, OwnKind } from "../hns/host.ts";
import type { RecordedCall } from "./recording.ts";

/**
 * An HNS that answers as a recorded one did.
 *
 * Edges: it knows no other calls than those that were recorded, in their order; the first other one fails, as HNS would have answered it nobody knows.
 */
export class ReplayedHns implements HnsHost {
  readonly #calls: readonly RecordedCall[];
  #next = 0;

  constructor(calls: readonly RecordedCall[]) {
    this.#calls = calls;
  }

  async version(): Promise<string> {
    return this.#answer("version", []) as string;
  }

  async list(kind: HnsKind): Promise<readonly string[]> {
    return this.#answer("list", [kind]) as readonly string[];
  }

  async createEndpoint(networkId: string, settings: string): Promise<string> {
    return this.#answer("createEndpoint", [networkId, settings]) as string;
  }

  async createLoadBalancer(settings: string): Promise<string> {
    return this.#answer("createLoadBalancer", [settings]) as string;
  }

  async modifyLoadBalancer(id: string, settings: string): Promise<string> {
    return this.#answer("modifyLoadBalancer", [id, settings]) as string;
  }

  async remove(kind: OwnKind, id: string): Promise<void> {
    this.#answer("remove", [kind, id]);
  }

  async close(): Promise<void> {
    // Nothing is under way.
  }

  #answer(call: RecordedCall["call"], asked: RecordedCall["asked"]): RecordedCall["answer"] {
    const recorded = this.#calls[this.#next++];
    if (recorded === undefined || JSON.stringify([recorded.call, recorded.asked]) !== JSON.stringify([call, asked])) {
      const was = recorded === undefined ? "the recording ends there" : `${recorded.call} ${recorded.asked.join(" ")} was recorded`;
      throw new ProxyError("not_found", `call ${this.#next} is ${call} ${asked.join(" ")}, and ${was}`, {
        object: "recording of HNS",
      });
    }
    if (recorded.failed !== undefined) throw new HnsError(recorded.failed.hresult, recorded.failed.detail);
    return recorded.answer;
  }
}

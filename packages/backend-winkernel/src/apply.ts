import { objectId, ProxyError } from "@turnout/core/backend";
import type { Clock, IPFamily, Log, Observed, Outcome, Plan, Turn } from "@turnout/core/backend";
import { BalancerWriter } from "./applying/balancers.ts";
import { EndpointWriter, HalfDone } from "./applying/endpoints.ts";
import type { HnsClient } from "./hns/client.ts";
import { isHnsError, reported } from "./hns/error.ts";
import type { WinkernelObject } from "./objects.ts";
import { HnsView, keyOf } from "./view.ts";
import { readView } from "./observe.ts";
import type { Step } from "./plan.ts";

/** What plans are carried out with. */
export interface ApplierTools {
  readonly client: HnsClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly family: IPFamily;
  readonly networkName: string;
  readonly rootName: string;
  /** The host's own address in the family; "": unknown. */
  ownAddress(): string;
}

/**
 * Carries plans out, one call after the other, each resumable: what is there is left or changed, and what is gone is gone.
 *
 * Edges: what HNS refuses fails by itself. Where HNS doesn't answer, nothing is concluded, and the plan ends.
 */
export class Applier {
  readonly #tools: ApplierTools;
  readonly #balancers: BalancerWriter;
  readonly #endpoints: EndpointWriter;
  /** What HNS held when it was looked at last, and what was done since; undefined: nobody knows. */
  #view: HnsView | undefined;
  /** The view was made for this plan. */
  #isFresh = false;

  constructor(tools: ApplierTools) {
    this.#tools = tools;
    this.#balancers = new BalancerWriter(tools.client, tools.log);
    this.#endpoints = new EndpointWriter(tools.client, this.#balancers);
  }

  /** Look at HNS, and read what is ours. @throws {ProxyError} what it failed with: that it is down never reads as empty. */
  async observe(signal: AbortSignal): Promise<Observed<WinkernelObject>> {
    this.#view = undefined;
    const view = await this.#look(signal);
    const { rootName } = this.#tools;
    return readView(view, { covered: this.#endpoints.covered, rootName, ownAddress: this.#tools.ownAddress() });
  }

  /** @throws {ProxyError} where HNS doesn't answer, or nobody can tell what it holds. */
  async apply({ steps }: Plan<Step>, signal: AbortSignal, turn?: Turn): Promise<Outcome<WinkernelObject>> {
    const failed = new Map<string, ProxyError>();
    const deferred = new Set<string>();
    this.#isFresh = false;
    for (const [index, step] of steps.entries()) {
      if (signal.aborted) throw new ProxyError("canceled", "the rest of the plan was not carried out", { cause: signal.reason });
      const id = objectId(step.object);
      if (index > 0 && turn !== undefined && this.#tools.clock.nowMs() >= turn.untilMs) {
        deferred.add(id);
        continue;
      }
      const error = await this.#tried(step, signal);
      if (error !== undefined) failed.set(id, error);
    }
    return { ...(failed.size === 0 ? {} : { failed }), ...(deferred.size === 0 ? {} : { deferred }) };
  }

  /** Undefined: it is done. */
  async #tried(step: Step, signal: AbortSignal): Promise<ProxyError | undefined> {
    const object = objectId(step.object);
    try {
      await this.#carryOut(step, signal);
      return undefined;
    } catch (error) {
      const isUnknown = error instanceof HalfDone || isHnsError(error, "down", "denied") || signal.aborted;
      if (isUnknown) this.#view = undefined;
      const operating = reported(error instanceof HalfDone ? error.cause : error, `HNS can't ${step.do} it`, object);
      if (isUnknown || !ProxyError.is(operating) || operating.code === "timed_out" || operating.code === "tool_missing") throw operating;
      return operating;
    }
  }

  /** What HNS says isn't there, or is, tells that others changed it: it is looked at again, once, before that counts. */
  async #carryOut(step: Step, signal: AbortSignal): Promise<void> {
    try {
      await this.#once(step, await this.#look(signal), signal);
    } catch (error) {
      const isStale =
        isHnsError(error, "exists", "notFound", "badReference", "inUse") || (!this.#isFresh && ProxyError.is(error, "not_found"));
      if (!isStale) throw error;
      this.#view = undefined;
      await this.#once(step, await this.#look(signal), signal);
    }
  }

  async #look(signal: AbortSignal): Promise<HnsView> {
    const { client, networkName, family } = this.#tools;
    if (this.#view !== undefined) return this.#view;
    this.#isFresh = true;
    return (this.#view = await HnsView.read(client, networkName, family, signal));
  }

  async #once({ do: what, object }: Step, view: HnsView, signal: AbortSignal): Promise<void> {
    const isPut = what === "put";
    switch (object.kind) {
      case "loadbalancer":
        if (isPut) return await this.#balancers.put(object, view, signal);
        return await this.#balancers.removeAll(balancersOf(object.key, view), view, signal);
      case "endpoint":
        return await (isPut ? this.#endpoints.put(object, view, signal) : this.#endpoints.remove(object, view, signal));
      case "source-vip":
        return await (isPut ? this.#endpoints.putSourceVip(object, view, signal) : this.#endpoints.removeSourceVip(object, view, signal));
    }
  }
}

/** Those at a frontend, or the one that is told by its id. */
function balancersOf(key: string, view: HnsView): ReturnType<HnsView["balancersAt"]> {
  return key.startsWith("id ") ? [...view.balancers.values()].filter((one) => keyOf(one) === key) : view.balancersAt(key);
}

import { ProxyError, type Clock, type IPFamily } from "@turnout/core";
import type { NodeStateProvider, NodeStates } from "./node-state-provider.ts";
import type { Cursor, NodeStateRequest, StateView } from "./state-view.ts";

/** What a registry is made of. */
export interface ViewRegistryOptions {
  readonly provider: NodeStateProvider;
  /** Identity of this run of the node-state server. */
  readonly instance: string;
  readonly clock: Clock;
  /** How long a view nobody watches is kept, so that whoever comes back gets a difference. */
  readonly lingerMs: number;
  /** Requests that are answered at a time, those kept for whoever comes back included. */
  readonly requestsMax: number;
}

/** One request's views, while it is held. */
export interface ViewLease {
  view(family: IPFamily): StateView;
  /** Tell whether a cursor is of a family's history, so that a difference may answer it. */
  knows(family: IPFamily, cursor: Cursor): boolean;
  /** Let go; once. */
  release(): void;
}

/** One request, its views and who watches them. */
interface Entry {
  readonly key: string;
  readonly states: NodeStates;
  readonly views: Map<IPFamily, { readonly view: StateView; readonly instance: string }>;
  watchers: number;
  /** Ends the wait for somebody who comes back. */
  linger: AbortController | undefined;
}

/** The views of a node-state server: one for each node, settings and family that is asked for, however many ask. */
export class ViewRegistry {
  readonly #options: ViewRegistryOptions;
  /** In the order in which they were last let go, or made. */
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  constructor(options: ViewRegistryOptions) {
    this.#options = options;
  }

  /** Requests held at this moment. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Hold the views that answer a request.
   * @throws {ProxyError} `limit_reached` when so many others are watched that there is no room.
   */
  acquire(request: NodeStateRequest): ViewLease {
    const { nodeName, settings, bindAddress } = request;
    const key = JSON.stringify([nodeName, bindAddress, settings]);
    const entry = this.#entries.get(key) ?? this.#open(key, request);
    entry.watchers += 1;
    entry.linger?.abort();
    entry.linger = undefined;
    return {
      view: (family) => this.#viewOf(entry, family),
      knows: (family, { instance }) => entry.views.get(family)?.instance === instance,
      release: () => {
        entry.watchers -= 1;
        // A registry that was closed keeps nothing for anybody.
        if (entry.watchers === 0 && this.#entries.has(entry.key)) void this.#linger(entry);
      },
    };
  }

  /** Close everything; whoever waits is canceled. */
  close(): void {
    for (const entry of this.#entries.values()) this.#drop(entry);
  }

  #open(key: string, request: NodeStateRequest): Entry {
    const { provider, requestsMax } = this.#options;
    if (this.#entries.size >= requestsMax) this.#makeSpace(requestsMax);
    const entry: Entry = { key, states: provider.open(request), views: new Map(), watchers: 0, linger: undefined };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Drop the one that nobody has watched for longest. */
  #makeSpace(most: number): void {
    for (const entry of this.#entries.values()) if (entry.watchers === 0) return this.#drop(entry);
    throw new ProxyError("limit_reached", `this node-state server answers ${most} requests already, and no more at a time`, {
      hint: "clients with the same node and settings share one; or start another node-state server",
    });
  }

  #viewOf({ views, states }: Entry, family: IPFamily): StateView {
    const known = views.get(family);
    if (known !== undefined) return known.view;
    const instance = `${this.#options.instance}-${(this.#serial += 1)}`;
    const view = states.view(family, instance);
    views.set(family, { view, instance });
    return view;
  }

  async #linger(entry: Entry): Promise<void> {
    this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
    const linger = (entry.linger = new AbortController());
    await this.#options.clock.sleep(this.#options.lingerMs, linger.signal);
    if (!linger.signal.aborted) this.#drop(entry);
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry.key);
    entry.linger?.abort();
    void entry.states.close();
  }
}

import type { RecentQuestion } from "./rule.ts";

const MS_PER_SECOND = 1_000;
/** Clients a list holds; the one not seen for longest makes room. @source xt_recent, ip_list_tot */
const CLIENTS_MAX = 100;

/** The kernel's lists of clients seen recently (xt_recent); both variants and families of a host share them. */
export class RecentLists {
  #lists = new Map<string, ReadonlyMap<string, number>>();

  /** When a client was last seen on a list, in ms; undefined: never, or forgotten. */
  seenAt(list: string, client: string): number | undefined {
    return this.#lists.get(list)?.get(client);
  }

  /** Answer a rule. @source Linux net/netfilter/xt_recent.c recent_mt */
  ask({ action, list, seconds, source }: RecentQuestion, nowMs: number): boolean {
    const seenAtMs = this.seenAt(list, source);
    if (action === "set" || (action === "update" && seenAtMs !== undefined && isFresh(seenAtMs))) this.put(list, source, nowMs);
    if (action === "remove") this.remove(list, source);
    return action === "set" || (seenAtMs !== undefined && (action === "remove" || isFresh(seenAtMs)));

    function isFresh(atMs: number): boolean {
      return seconds === 0 || nowMs - atMs <= seconds * MS_PER_SECOND;
    }
  }

  /** Note that a client was seen. */
  put(list: string, client: string, nowMs: number): void {
    const clients = new Map(this.#lists.get(list));
    // Behind all others: the first one is the one not seen for longest.
    clients.delete(client);
    for (const [oldest] of clients) {
      if (clients.size < CLIENTS_MAX) break;
      clients.delete(oldest);
    }
    this.#lists.set(list, clients.set(client, nowMs));
  }

  /** Forget a client. */
  remove(list: string, client: string): void {
    const clients = new Map(this.#lists.get(list));
    if (clients.delete(client)) this.#lists.set(list, clients);
  }

  /** Drop the lists that no rule names any more: the last rule takes its list along. `named` is asked when there are lists. */
  keepOnly(named: () => ReadonlySet<string>): void {
    if (this.#lists.size === 0) return;
    const names = named();
    for (const name of this.#lists.keys()) if (!names.has(name)) this.#lists.delete(name);
  }

  /** Do something and take back what it left on the lists. */
  withoutTraces<T>(act: () => T): T {
    const before = new Map(this.#lists);
    const result = act();
    this.#lists = before;
    return result;
  }
}

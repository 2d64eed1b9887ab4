import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { canonicalIP, hostPort, type ChangeSet, type Destination, type Log, type ServicePort } from "@turnout/core";
import type { ApiTarget } from "./target.ts";

/** Lines in the log: a tenant could make any number of such Services. */
const SAID_MAX = 20;
const HINT = "give the Service an external IP that nothing else uses";

/**
 * Keeps rows from taking the connection to the node-state server away: no external IP may be its address and port.
 *
 * Edges: a target on a unix socket has no address. Addresses that the name had before stay known.
 */
export class ServerAddresses {
  readonly #target: ApiTarget;
  readonly #log: Log;
  readonly #known = new Set<string>();
  readonly #said = new Set<string>();

  constructor(target: ApiTarget, log: Log) {
    this.#target = target;
    this.#log = log;
  }

  /** Find the addresses that the next connection may be to; true: there are new ones. A name that can't be looked up has none. */
  async refresh(): Promise<boolean> {
    if (this.#target.kind !== "tls") return false;
    const { host, port } = this.#target;
    const found = isIP(host) === 0 ? await lookup(host, { all: true }).catch(() => []) : [{ address: host }];
    const before = this.#known.size;
    for (const { address } of found) this.#known.add(`${canonicalIP(address)?.text ?? address} ${port}`);
    return this.#known.size > before;
  }

  /** Leave external IPs that are the server's out of a change set; it stays the same object where there are none. */
  without(changes: ChangeSet): ChangeSet {
    if (this.#known.size === 0) return changes;
    const set = changes.set.map((row) => this.#withoutTheirs(row));
    return set.every((row, index) => row === changes.set[index]) ? changes : { ...changes, set };
  }

  #withoutTheirs(row: ServicePort): ServicePort {
    if (row.name.protocol !== "TCP") return row;
    const theirs = row.destinations.filter(({ address, port, kind }) => this.#known.has(`${address} ${port}`) && kind !== "clusterIP");
    if (theirs.length === 0) return row;
    for (const destination of theirs) this.#say(row.key, destination);
    if (theirs.every(({ kind }) => kind !== "externalIP")) return row;
    return { ...row, destinations: row.destinations.filter((one) => one.kind !== "externalIP" || !theirs.includes(one)) };
  }

  #say(key: string, { kind, address, port }: Destination): void {
    const text = `${key} ${hostPort(address, port)}`;
    if (this.#said.has(text) || this.#said.size >= SAID_MAX) return;
    this.#said.add(text);
    const what = kind === "externalIP" ? "an external IP that is the node-state server's address is left out" : "a load-balancer IP is the node-state server's address";
    this.#log.warn(what, { object: `Service port ${key}`, address: hostPort(address, port), hint: HINT });
  }
}

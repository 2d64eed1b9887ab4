import { hostPort, isEqual, LOOPBACK_ADDRESS, namesLoopback, objectId } from "@turnout/core";
import type { ChangeSet, Clock, IPFamily, Log, NodeSettings, ProxyError, ServicePort, Variants } from "@turnout/core";
import { createNodeSockets, Fronts, SharedSockets, Traffic } from "../../sockets/index.ts";
import type { ListenerObject, Sockets, TrafficOptions } from "../../sockets/index.ts";

/** What the node ports of one family on loopback are served with. */
export interface LoopbackOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** The rows whose rules are active, by their keys. */
  readonly rows: () => ReadonlyMap<string, ServicePort>;
  /** Hears how many listeners there are. */
  readonly onListeners: (count: number) => void;
  /** Hears that a listener could not be opened. */
  readonly onFailure: () => void;
  /** Default: those of this process. */
  readonly sockets?: Sockets;
}

/** As kube-proxy dials; no connection is cut, as with node ports at other addresses. The limit keeps clients of this host from exhausting the process. */
const TRAFFIC: TrafficOptions = {
  endpointMap: new Map(),
  balance: "random",
  drainSeconds: 0,
  dialSeconds: 5,
  tcpIdleSeconds: 0,
  udpIdleSeconds: 60,
  maxConnections: 10_000,
  maxConnectionsPerListener: 10_000,
  maxUdpSessions: 1,
};
const RETRY_MS = 5_000;

/**
 * Say how a row's node port is answered on loopback; undefined: it is not. Pure.
 *
 * Shape: everyone who asks there is this host, so the rule for anyone decides, which is the external policy. As in kube-proxy, and unlike at other
 * addresses, `externalTrafficPolicy: Local` leads the host to endpoints of this node only; without one, connections are refused.
 * @source kube-proxy pkg/proxy/nftables/proxier.go localhostNodePorts; rule R-38
 */
export function loopbackListener(row: ServicePort): ListenerObject | undefined {
  const destination = row.destinations.find(({ kind }) => kind === "nodePort");
  const to = destination?.rules.at(-1)?.to;
  if (row.name.protocol !== "TCP" || destination === undefined || (to !== "cluster" && to !== "local")) return undefined;
  const endpoints = row[to].flatMap((index) => row.endpoints[index] ?? []).map(({ ip, port }) => hostPort(ip, port));
  if (endpoints.length === 0) return undefined;
  const { port } = destination;
  const ip = LOOPBACK_ADDRESS[row.family];
  return {
    kind: "node-port",
    key: `TCP ${hostPort(ip, port)}`,
    value: {
      row: row.key,
      transport: "TCP",
      ip,
      port,
      asked: { address: "", port },
      rules: [{ from: "anyone", to: "cluster" }],
      cluster: endpoints,
      local: [],
      ...(row.affinitySeconds === undefined ? {} : { affinitySeconds: row.affinitySeconds }),
    },
  };
}

/**
 * Serve node ports on loopback where the settings name it and the backend leaves that to this process; undefined: nothing is served.
 *
 * Edges: where loopback is named and nothing answers there, that is logged.
 */
export function loopbackNodePorts(
  settings: NodeSettings,
  { nodePortsOnLoopback: served }: Pick<Variants, "nodePortsOnLoopback">,
  options: LoopbackOptions,
): LoopbackNodePorts | undefined {
  const { family, log } = options;
  if (settings.localhostNodePorts === false && served !== family && namesLoopback({ ...settings, localhostNodePorts: true }, family))
    log.warn("node ports do not answer on loopback: KubeProxyNFTablesLocalhostNodePorts is false", {
      family,
      address: LOOPBACK_ADDRESS[family],
      hint: "nodePortAddresses names it: take it out, or leave the feature gate out",
    });
  if (!namesLoopback(settings, family) || served === family) return undefined;
  if (served === "TCP") return new LoopbackNodePorts(options);
  log.warn("node ports do not answer on loopback: this backend has no way to", {
    family,
    address: LOOPBACK_ADDRESS[family],
    hint: "nodePortAddresses names it: take it out, or use a backend that answers there",
  });
  return undefined;
}

/**
 * The node ports of TCP that this process answers on loopback, in one family: no kernel forwards such packets off the host.
 *
 * Edges: a port that can't be opened is reported once and tried again every 5 s; it stops no other. What a change does not touch is not looked at.
 * @source KEP-6032; kube-proxy pkg/proxy/localnodeportproxy
 */
export class LoopbackNodePorts {
  readonly #options: LoopbackOptions;
  readonly #fronts: Fronts;
  /** What is open, by rows. */
  readonly #open = new Map<string, ListenerObject>();
  readonly #touched = new Set<string>();
  readonly #reported = new Map<string, string>();
  readonly #closing = new AbortController();
  #isRetrying = false;
  #work: Promise<void> = Promise.resolve();

  constructor(options: LoopbackOptions) {
    this.#options = options;
    const { family, sockets = createNodeSockets() } = options;
    const traffic = new Traffic(family, { ...options, sockets, random: Math.random }, TRAFFIC, new SharedSockets(TRAFFIC));
    this.#fronts = new Fronts(traffic, (id) => this.#lose(id));
    options.onListeners(0);
  }

  /** Note which rows change; their listeners follow at the next {@link LoopbackNodePorts.sync}. */
  note({ full, set, delete: deleted }: Pick<ChangeSet, "full" | "set" | "delete">): void {
    for (const key of [...(full ? this.#open.keys() : []), ...set.map((row) => row.key), ...deleted]) this.#touched.add(key);
  }

  /** Open, close and change listeners until they are as the rows that changed want them. */
  sync(): Promise<void> {
    this.#work = this.#work.then(() => this.#reconcile());
    return this.#work;
  }

  /** Close every listener, and cut what is open. */
  close(): Promise<void> {
    this.#closing.abort();
    this.#work = this.#work.then(() => this.#fronts.cutAll());
    return this.#work;
  }

  async #reconcile(): Promise<void> {
    if (this.#closing.signal.aborted || this.#touched.size === 0) return;
    const keys = [...this.#touched];
    this.#touched.clear();
    const rows = this.#options.rows();
    const wanted = new Map(
      keys.map((key) => {
        const row = rows.get(key);
        return [key, row === undefined ? undefined : loopbackListener(row)] as const;
      }),
    );
    // First what goes: the node port may be another row's now.
    for (const [key, listener] of wanted) {
      const open = this.#open.get(key);
      if (open === undefined || open.key === listener?.key) continue;
      this.#open.delete(key);
      await this.#fronts.remove(open);
    }
    for (const [key, listener] of wanted) {
      if (listener === undefined) this.#reported.delete(key);
      else if (!isEqual(this.#open.get(key), listener)) await this.#put(key, listener);
    }
    this.#fronts.retainAffinity(keys);
    this.#options.onListeners(this.#open.size);
    if (this.#touched.size > 0) void this.#retryLater();
  }

  async #put(key: string, listener: ListenerObject): Promise<void> {
    const error = await this.#fronts.put(listener);
    if (error === undefined) {
      this.#open.set(key, listener);
      this.#reported.delete(key);
      return;
    }
    this.#open.delete(key);
    this.#touched.add(key);
    this.#options.onFailure();
    this.#report(key, error);
  }

  #report(key: string, error: ProxyError): void {
    if (this.#reported.get(key) === error.message) return;
    this.#reported.set(key, error.message);
    this.#options.log.warn("a node port can't be opened on loopback, trying again every 5 s", { row: key, error });
  }

  /** A listener failed after it was opened. */
  #lose(id: string): void {
    for (const [key, listener] of this.#open) {
      if (objectId(listener) !== id) continue;
      this.#open.delete(key);
      this.#touched.add(key);
    }
    void this.#retryLater();
  }

  async #retryLater(): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    const { signal } = this.#closing;
    await this.#options.clock.sleep(RETRY_MS, signal);
    this.#isRetrying = false;
    await this.sync();
  }
}

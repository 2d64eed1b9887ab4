import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import {
  objectId,
  ProxyError,
  type Backend,
  type BackendModule,
  type ChangeSet,
  type Endpoint,
  type Feed,
  type HostEvent,
  type IPFamily,
  type KernelObject,
  type Log,
  type NodeContext,
  type ServicePort,
  type World,
} from "@turnout/core";
import { TestClock } from "@turnout/core/testing";

/** A clock that stands still, beside a wall clock that may be ahead. */
export class ToyClock extends TestClock {
  wallAheadMs = 0;

  aheadMs(): number {
    return this.wallAheadMs;
  }

  /** Let time go by, and all that waits for none before and after. */
  override async advance(ms: number): Promise<void> {
    await flushPromises();
    await super.advance(ms);
    await flushPromises();
  }
}

/** Let everything run that waits for nothing but its turn. */
export async function flushPromises(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Wait for something that real sockets decide; fails the test after about five seconds. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never happened: ${what}`);
}

/** A log that remembers `level message` with its fields. */
export class ToyLog implements Log {
  readonly lines: string[] = [];
  debug = (message: string, fields?: object): void => this.#note("debug", message, fields);
  info = (message: string, fields?: object): void => this.#note("info", message, fields);
  warn = (message: string, fields?: object): void => this.#note("warn", message, fields);
  error = (message: string, fields?: object): void => this.#note("error", message, fields);

  #note(level: string, message: string, fields: object = {}): void {
    const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${value instanceof Error ? value.message : String(value)}`);
    this.lines.push(`${level} ${message}${shown.join("")}`);
  }
}

/** A world with a toy clock and log; programs are out of bounds. */
export function toyWorld(): World & { readonly clock: ToyClock; readonly log: ToyLog } {
  const outOfBounds = (): never => {
    throw new Error("the toy world has no programs");
  };
  return {
    exec: { run: outOfBounds, open: outOfBounds },
    clock: new ToyClock(),
    log: new ToyLog(),
  };
}

/** A feed that hands on what is pushed, one change set at a time. */
export class ToyFeed implements Feed {
  readonly #queue: ChangeSet[] = [];
  #wake: (() => void) | undefined;

  push(changes: ChangeSet): void {
    this.#queue.push(changes);
    this.#wake?.();
  }

  async next(signal: AbortSignal): Promise<ChangeSet> {
    for (;;) {
      const first = this.#queue.shift();
      if (first !== undefined) return first;
      if (signal.aborted) throw new ProxyError("canceled", "the toy feed was stopped");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }
}

/** A host in memory: what the toy backend has in force, and how it misbehaves. */
export class ToyKernel {
  readonly objects: Record<IPFamily, Map<string, KernelObject>> = { IPv4: new Map(), IPv6: new Map() };
  readonly closed: IPFamily[] = [];
  applies = 0;
  /** What an apply does before its time is up. */
  stepsPerTurn: number = Number.POSITIVE_INFINITY;
  /** The next applies fail with these. */
  readonly failures: ProxyError[] = [];
  /** Families that can't be opened. */
  readonly missing: Set<IPFamily> = new Set();
  problems: readonly ProxyError[] = [];
  #emit: ((event: HostEvent<string>) => void) | undefined;

  /** Tell whoever watches. */
  emit(event: HostEvent<string>): void {
    this.#emit?.(event);
  }

  async *events(signal: AbortSignal): AsyncIterable<HostEvent<string>> {
    while (!signal.aborted) {
      const event = await new Promise<HostEvent<string> | undefined>((resolve) => {
        this.#emit = resolve;
        signal.addEventListener("abort", () => resolve(undefined), { once: true });
      });
      if (event !== undefined) yield event;
    }
  }
}

/** A whole backend in memory: one object per destination, its value naming endpoints and the host's facts. */
export function toyModule(kernel: ToyKernel, overrides: Partial<BackendModule> = {}): BackendModule {
  const capabilities = { IPv4: true, IPv6: true, TCP: true, UDP: true, SCTP: true, sessionAffinity: true, sourceRanges: true } as const;
  const module: BackendModule<unknown, string, KernelObject, KernelObject> = {
    name: "toy",
    contract: 2,
    residence: "kernel",
    capabilities: { ...capabilities, clientAddress: true, hairpin: true, hostOrigin: true, drop: true },
    variants: {
      undefinedClusterIPPort: "pass",
      unallocatedClusterIP: "pass",
      nodePortRejectScope: "anyLocalAddress",
      rejectFromHost: false,
      blockedWithoutEndpoints: "drop",
      affinityScope: "row",
      nodePortsOnLoopback: "never",
    },
    parseOptions: (raw) => raw,
    probe: () => Promise.resolve({ facts: "first facts", versions: { toy: "1" }, problems: kernel.problems }),
    open: () => {
      const opened: IPFamily[] = [];
      return Promise.resolve({
        family: (family) => {
          if (kernel.missing.has(family)) throw new ProxyError("host_unsupported", `no ${family} here`);
          opened.push(family);
          return toyBackend(kernel, family);
        },
        close: () => Promise.resolve(void kernel.closed.push(...opened)),
      });
    },
    ...(overrides as object),
  };
  return module;
}

type ToyBackend = Backend<unknown, KernelObject, unknown>;

/** A module whose families' backends have some of their functions replaced; undefined is for what they lack. */
export function withBackends(
  module: BackendModule,
  change: (inner: ToyBackend, family: IPFamily) => { readonly [Part in keyof ToyBackend]?: ToyBackend[Part] | undefined },
): BackendModule {
  return {
    ...module,
    async open(options, world, signal) {
      const dataplane = await module.open(options, world, signal);
      const changed = (inner: ToyBackend, family: IPFamily): ToyBackend =>
        Object.defineProperties({ ...inner }, Object.getOwnPropertyDescriptors(change(inner, family)));
      return { ...dataplane, family: (family) => changed(dataplane.family(family), family) };
    },
  };
}

function toyBackend(kernel: ToyKernel, family: IPFamily): Backend<string, KernelObject, KernelObject> {
  const held = kernel.objects[family];
  return {
    skeleton: ({ host }) => [{ kind: "table", key: family, value: host }],
    render: (row) =>
      row.destinations.map(({ address, port }) => ({
        kind: "service",
        key: `${address}:${port}`,
        value: row.endpoints.map(({ ip }) => ip),
      })),
    plan: ({ put, remove }) => ({ steps: [...remove.map((object) => ({ ...object, value: "gone" })), ...put.map(({ after }) => after)] }),
    explain: ({ steps }) => steps.map(objectId).join("\n"),
    observe: () => Promise.resolve({ objects: new Map(held), lingering: [] }),
    apply: ({ steps }) => {
      kernel.applies += 1;
      const failure = kernel.failures.shift();
      if (failure !== undefined) return Promise.reject(failure);
      const later = steps.slice(kernel.stepsPerTurn);
      for (const step of steps.slice(0, kernel.stepsPerTurn)) {
        if (step.value === "gone") held.delete(objectId(step));
        else held.set(objectId(step), step);
      }
      return Promise.resolve(later.length === 0 ? {} : { deferred: new Set(later.map(objectId)) });
    },
    reportsDrift: true,
    watch: (signal) => kernel.events(signal),
  };
}

/** A node context with what tests care about. */
export function toyNode(overrides: Partial<NodeContext> = {}): NodeContext {
  return {
    name: "node1",
    family: "IPv4",
    addresses: ["127.0.0.1"],
    zone: "",
    podCIDRs: [],
    serviceCIDRs: [],
    detector: undefined,
    settings: {
      masqueradeAll: false,
      masqueradeBit: 14,
      detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] },
      nodePortAddresses: ["localhost"],
    },
    ...overrides,
  };
}

/** A ready endpoint. */
export function toyEndpoint(ip: string, overrides: Partial<Endpoint> = {}): Endpoint {
  return { ip, port: 8080, nodeName: undefined, isLocal: false, ready: true, serving: true, terminating: false, ...overrides };
}

/** A row `shop/NAME:http/TCP` with one cluster IP. */
export function toyRow(name: string, overrides: Partial<ServicePort> = {}): ServicePort {
  return {
    key: `shop/${name}:http/TCP`,
    name: { namespace: "shop", name, port: "http", protocol: "TCP" },
    family: "IPv4",
    createdMs: 0,
    endpoints: [toyEndpoint("10.1.0.5")],
    cluster: [0],
    local: [],
    topology: "",
    destinations: [{ kind: "clusterIP", address: "10.96.0.10", port: 80, rules: [{ from: "anyone", to: "cluster", masquerade: false }] }],
    affinitySeconds: undefined,
    internalLocal: false,
    externalLocal: false,
    healthCheck: undefined,
    ...overrides,
  };
}

/** A full change set. */
export function toyFull(rows: readonly ServicePort[], node: NodeContext = toyNode()): ChangeSet {
  return { instance: "toy", revision: 1, family: node.family, full: true, node, set: rows, delete: [], triggersMs: [] };
}

/** A change set of single rows. */
export function toyChange(changes: Partial<ChangeSet>): ChangeSet {
  return { instance: "toy", revision: 2, family: "IPv4", full: false, set: [], delete: [], triggersMs: [], ...changes };
}

/** A TCP port of loopback that is free just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

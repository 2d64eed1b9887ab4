import { FAMILIES, hostPort, objectId, ProxyError, Waiters } from "@turnout/core";
import type { Exec, ExecResult, FlowFilter, IPFamily, World } from "@turnout/core";
import type { Flow, Packet } from "../oracle/packet.ts";
import { pickOne, RecordingLog, TestClock } from "@turnout/core/testing";
import type { FakeHost, Fault, HostAddress, Trace } from "../runner/fake-host.ts";
import { FaultSwitches } from "../runner/fault-switches.ts";
import type {
  ReferenceDestination,
  ReferenceEvent,
  ReferenceNode,
  ReferenceObject,
  ReferenceStep,
  ReferenceWorld,
} from "./reference-objects.ts";
import { affinityRow, destinationKeyOf, traceReference } from "./reference-trace.ts";
import type { ReferenceState } from "./reference-trace.ts";
import { STAGE_ADDRESSES } from "../runner/stage.ts";

/** Somebody else's words: there from the start, and never the backend's to touch. */
const EXTERNAL: readonly string[] = ["IPv4 note of somebody else", "IPv6 note of somebody else"];

interface AffinityEntry {
  readonly endpoint: string;
  readonly untilMs: number;
}

/** Make the host of the reference backend: what the tool `reference` has written is in force. */
export function createReferenceHost(): FakeHost & { readonly world: ReferenceWorld } {
  return new ReferenceHost();
}

class ReferenceHost implements FakeHost {
  readonly world: ReferenceWorld;
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock();
  readonly #written: Readonly<Record<IPFamily, Map<string, ReferenceObject>>> = { IPv4: new Map(), IPv6: new Map() };
  readonly #affinity = new Map<string, AffinityEntry>();
  readonly #watchers = new Waiters();
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;
  #ips: ReadonlySet<string> = new Set(this.#addresses.map(({ ip }) => ip));
  #flows: readonly Flow[] = [];
  #count = 0;
  /** What happened, but for what the tool did. */
  readonly #events: ReferenceEvent[] = [];
  readonly #connections: Readonly<Record<IPFamily, Map<string, number>>> = { IPv4: new Map(), IPv6: new Map() };

  constructor() {
    this.world = { exec: this.#exec(), clock: this.#clock, log: new RecordingLog(), ...this.#kernel() };
  }

  get flows(): readonly Flow[] {
    return this.#flows;
  }

  async advance(ms: number): Promise<void> {
    await this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
    this.#ips = new Set(addresses.map(({ ip }) => ip));
    this.#happened({ kind: "addresses" });
  }

  trace(packet: Packet, random: () => number): Trace {
    return traceReference(this.#state(packet.family), packet, random);
  }

  connect(packet: Packet, random: () => number): Trace {
    const { family, source, destination, port } = packet;
    const state = this.#state(family);
    const trace = traceReference(state, packet, random);
    const row = affinityRow(state, packet);
    if (row !== undefined && trace.endpoint !== undefined)
      this.#affinity.set(affinityKey(family, row.row, source), {
        endpoint: trace.endpoint,
        untilMs: this.#clock.nowMs() + row.affinitySeconds * 1000,
      });
    const key = trace.is === "forward" ? destinationKeyOf(state, packet) : undefined;
    const connections = this.#connections[family];
    if (key !== undefined) connections.set(key, (connections.get(key) ?? 0) + 1);
    if (packet.protocol === "UDP" && (trace.is === "forward" || trace.is === "pass"))
      this.#flows = [...this.#flows, { family, source, destination, port, endpoint: trace.endpoint ?? hostPort(destination, port) }];
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    const family = pickOne(FAMILIES, random);
    const written = this.#written[family];
    if (written.size === 0) return undefined;
    const object = pickOne([...written.values()], random);
    const what = pickOne(["delete", "change", "add"] as const, random);
    if (what === "delete") written.delete(objectId(object));
    else if (what === "change") written.set(objectId(object), { ...object, value: { scribbled: true } });
    else written.set("clusterIP 192.0.2.1", { kind: "clusterIP", key: "192.0.2.1", value: true });
    const id = what === "add" ? "clusterIP 192.0.2.1" : objectId(object);
    this.#happened({ kind: "hand", family, id });
    return `${what} ${family} ${id}`;
  }

  own(): readonly string[] {
    return FAMILIES.flatMap((family) =>
      [...this.#written[family].values()].map((one) => `${family} ${objectId(one)} ${JSON.stringify(one.value)}`),
    ).sort();
  }

  written(): number {
    return this.#count;
  }

  counted(): number {
    return FAMILIES.flatMap((family) => [...this.#connections[family].values()]).reduce((sum, count) => sum + count, 0);
  }

  external(): readonly string[] {
    return EXTERNAL;
  }

  #state(family: IPFamily): ReferenceState {
    const written = this.#written[family];
    return {
      node: written.get("node node")?.value as unknown as ReferenceNode | undefined,
      destination: (key) => written.get(`destination ${key}`)?.value as unknown as ReferenceDestination | undefined,
      isClusterIP: (address) => written.has(`clusterIP ${address}`),
      hostAddresses: this.#ips,
      affinityOf: (row, client) => {
        const entry = this.#affinity.get(affinityKey(family, row, client));
        return entry !== undefined && entry.untilMs > this.#clock.nowMs() ? entry.endpoint : undefined;
      },
    };
  }

  #exec(): Exec {
    return {
      run: async (file, args, { input = "" } = {}): Promise<ExecResult> => {
        await Promise.resolve();
        const [verb = "", family = ""] = args;
        if (file !== "reference") throw new ProxyError("tool_missing", `${file} is not here`);
        if (family !== "IPv4" && family !== "IPv6") return refused(`no family ${family}`);
        if (verb === "list") return { code: 0, stdout: JSON.stringify([...this.#written[family].values()]), stderr: "" };
        if (verb !== "write") return refused(`no verb ${verb}`);
        return this.#write(family, input === "" ? [] : input.split("\n").map((line) => JSON.parse(line) as ReferenceStep));
      },
      open: () => {
        throw new Error("nobody starts reference ahead of its input");
      },
    };
  }

  /** Write all of it or nothing; only a process that is killed in between leaves half. */
  #write(family: IPFamily, steps: readonly ReferenceStep[]): ExecResult {
    const due = this.#faults.next(JSON.stringify(steps));
    const written = this.#written[family];
    const complaint = complaintAbout(steps, written);
    if (due === "before") return refused("out of ink");
    if (complaint !== undefined) return refused(complaint);
    for (const { do: verb, object } of due === "during" ? steps.slice(0, Math.ceil(steps.length / 2)) : steps) {
      this.#count++;
      if (verb === "remove") written.delete(objectId(object));
      else written.set(objectId(object), object);
    }
    return due === undefined ? { code: 0, stdout: "", stderr: "" } : refused("out of ink");
  }

  #kernel(): Omit<ReferenceWorld, keyof World> {
    return {
      addresses: (family) => Promise.resolve(this.#addresses.filter(({ ip }) => (ip.includes(":") ? "IPv6" : "IPv4") === family)),
      deleteFlows: async (family, filters, signal) => {
        await Promise.resolve();
        if (signal.aborted) throw new ProxyError("canceled", "forgetting flows was given up", { cause: signal.reason });
        const before = this.#flows.length;
        this.#flows = this.#flows.filter((flow) => flow.family !== family || !filters.some((filter) => this.#isStale(flow, filter)));
        return before - this.#flows.length;
      },
      // From this call on, as a netlink socket does, and not from when somebody reads.
      watchHost: (signal) => this.#eventsAfter(this.#events.length, signal),
      connections: (family) =>
        Promise.resolve(new Map([...this.#connections[family]].filter(([key]) => this.#written[family].has(`destination ${key}`)))),
    };
  }

  #isStale({ destination, port, endpoint }: Flow, { address, port: of, keep, only }: FlowFilter): boolean {
    const isThere = address === "" ? this.#ips.has(destination) : address === destination;
    return isThere && port === of && !keep.includes(endpoint) && (only === undefined || only.includes(endpoint));
  }

  #happened(event: ReferenceEvent): void {
    this.#events.push(event);
    this.#watchers.resolve();
  }

  async *#eventsAfter(known: number, signal: AbortSignal): AsyncIterable<ReferenceEvent> {
    for (let next = known; !signal.aborted;) {
      const event = this.#events[next];
      if (event === undefined) await this.#watchers.wait(signal);
      else {
        next++;
        yield event;
      }
    }
  }
}

function affinityKey(family: IPFamily, row: string, client: string): string {
  return `${family} ${row} ${client}`;
}

function refused(why: string): ExecResult {
  return { code: 1, stdout: "", stderr: why };
}

/** Say which step can't be carried out; undefined: all can. */
function complaintAbout(steps: readonly ReferenceStep[], written: ReadonlyMap<string, ReferenceObject>): string | undefined {
  const touched = new Set<string>();
  for (const { do: verb, object } of steps) {
    const id = objectId(object);
    if (touched.has(id)) return `${id} is touched twice`;
    touched.add(id);
    if (written.has(id) === (verb === "add")) return `${id} is ${verb === "add" ? "" : "not "}there`;
    if (verb === "remove" || object.kind !== "destination") continue;
    const { rules, cluster, local } = object.value as unknown as ReferenceDestination;
    if (rules.at(-1)?.from !== "anyone") return `${id} does not say what becomes of anyone`;
    if (rules.some(({ to }) => (to === "cluster" && cluster.length === 0) || (to === "local" && local.length === 0)))
      return `${id} has a rule with an empty pool`;
  }
  return undefined;
}

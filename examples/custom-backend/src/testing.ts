/**
 * A host in memory that has nothing but a directory for the table: what the conformance kit plays on.
 *
 * @packageDocumentation
 */
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Flow, HostAddress, Packet, Trace } from "@turnout/conformance";
import { Waiters } from "@turnout/core";
import type { ExecResult } from "@turnout/core";
import { hostPort, ProxyError } from "@turnout/core/backend";
import type { Exec, FlowFilter, IPFamily } from "@turnout/core/backend";
import { RecordingLog, TestClock } from "@turnout/core/testing";
import type { TableWorld } from "./index.ts";
import { followPacket, type Table } from "./table.ts";

const DIRECTORY = "/run/turnout-table";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const familyOf = (ip: string): IPFamily => (ip.includes(":") ? "IPv6" : "IPv4");
const fileOf = (family: IPFamily): string => `${DIRECTORY}/${family}.json`;

/** Make a host with an empty directory, and beside it something that isn't ours. */
export function createFakeHost(): FakeHost & { readonly world: TableWorld } {
  const disk = new FakeDisk();
  const network = new FakeNetwork();
  const clock = new TestClock();
  const trace = (packet: Packet, random: () => number): Trace => followPacket(disk.table(packet.family), packet, random);
  return {
    world: { exec: disk, netlink: network, clock, log: new RecordingLog() },
    advance: (ms) => clock.advance(ms),
    setAddresses: (addresses) => network.setAddresses(addresses),
    trace,
    connect(packet, random) {
      const traced = trace(packet, random);
      const answers = traced.is === "pass" ? hostPort(packet.destination, packet.port) : traced.endpoint;
      if (packet.protocol === "UDP" && answers !== undefined) network.remember({ ...packet, endpoint: answers });
      return traced;
    },
    get flows() {
      return network.flows;
    },
    setFault: (fault) => disk.faults.setFault(fault),
    refuse: (addresses) => disk.faults.refuse(addresses),
    tamper: (random) => disk.tamper(random),
    own: () =>
      FAMILIES.flatMap((family) => Object.entries(disk.table(family)).map(([id, value]) => `${family} ${id} ${JSON.stringify(value)}`)),
    external: () => [...disk.files].filter(([path]) => !path.startsWith(`${DIRECTORY}/`)).map((file) => file.join(" ")),
  };
}

/** The programs the backend runs, on files in memory. */
class FakeDisk implements Exec {
  readonly files: Map<string, string> = new Map([["/run/turnout-table.txt", "not ours"]]);
  readonly faults: FaultSwitches = new FaultSwitches();
  readonly #read: Partial<Record<IPFamily, { readonly text: string; readonly table: Table }>> = {};

  /** What a file says; read once as long as it stays the same, because many packets are followed through it. */
  table(family: IPFamily): Table {
    const text = this.files.get(fileOf(family)) ?? "{}";
    if (this.#read[family]?.text !== text) this.#read[family] = { text, table: JSON.parse(text) as Table };
    return this.#read[family].table;
  }

  run(program: string, args: readonly string[], { input = "" }: { readonly input?: string } = {}): Promise<ExecResult> {
    const path = args.at(-1) ?? "";
    const text = this.files.get(path);
    switch (program) {
      case "test":
        return ended(path === DIRECTORY || text !== undefined ? 0 : 1);
      case "cat":
        return text === undefined ? ended(1, `cat: ${path}: No such file or directory`) : ended(0, "", text);
      case "dd":
        if (this.faults.isRefused(input)) return ended(1, "dd: Input/output error");
        this.files.set((args[0] ?? "").slice("of=".length), input);
        return ended(0);
      case "mv":
        return this.#change("mv", () => this.#move(args[1] ?? "", path));
      case "rm":
        return this.#change("rm", () => args.slice(1).forEach((gone) => this.files.delete(gone)));
      default:
        return Promise.reject(new ProxyError("tool_missing", "there is no such program", { object: program }));
    }
  }

  open(program: string): never {
    throw new Error(`the table backend keeps no ${program} running`);
  }

  /** What makes or breaks a table is one rename, so nothing can be half done: `during` is before it. */
  #change(program: string, carryOut: () => void): Promise<ExecResult> {
    const when = this.faults.next("");
    if (when === "before" || when === "during") return ended(1, `${program}: Input/output error`);
    carryOut();
    return when === undefined ? ended(0) : Promise.reject(new ProxyError("timed_out", "no answer within 60 s", { object: program }));
  }

  #move(from: string, to: string): void {
    this.files.set(to, this.files.get(from) ?? "");
    this.files.delete(from);
  }

  tamper(random: () => number): string | undefined {
    const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
    const family = one(FAMILIES.filter((candidate) => Object.keys(this.table(candidate)).length > 0));
    if (family === undefined) return undefined;
    const table = { ...this.table(family) };
    const id = one(Object.keys(table)) ?? "";
    const tampering = one(["delete", "change", "add"]);
    if (tampering === "delete") delete table[id];
    else table[tampering === "change" ? id : `${id}0`] = { service: "foreign", sources: [], rules: [] };
    this.files.set(fileOf(family), JSON.stringify(table));
    return `${tampering} ${id} in ${fileOf(family)}`;
  }
}

/** Addresses and remembered UDP flows. */
class FakeNetwork {
  flows: readonly Flow[] = [];
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;
  #changes = 0;
  readonly #watchers = new Waiters();

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
    this.#changes++;
    this.#watchers.resolve();
  }

  addresses(family: IPFamily): Promise<readonly HostAddress[]> {
    return Promise.resolve(this.#addresses.filter(({ ip }) => familyOf(ip) === family));
  }

  remember({ family, source, destination, port, endpoint }: Flow): void {
    this.flows = [...this.flows, { family, source, destination, port, endpoint }];
  }

  deleteFlows(family: IPFamily, filters: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
    if (signal.aborted) return Promise.resolve(0);
    const isHere = (ip: string): boolean => this.#addresses.some((address) => address.ip === ip);
    const goes = (flow: Flow): boolean =>
      flow.family === family &&
      filters.some(
        ({ address, port, keep, only }) =>
          flow.port === port &&
          (address === "" ? isHere(flow.destination) : address === flow.destination) &&
          !keep.includes(flow.endpoint) &&
          (only?.includes(flow.endpoint) ?? true),
      );
    const left = this.flows.filter((flow) => !goes(flow));
    const count = this.flows.length - left.length;
    this.flows = left;
    return Promise.resolve(count);
  }

  /** Tells of each change from this call on, as a netlink socket does. */
  watchAddresses(signal: AbortSignal): AsyncIterable<void> {
    return this.#changesAfter(this.#changes, signal);
  }

  async *#changesAfter(reported: number, signal: AbortSignal): AsyncIterable<void> {
    let known = reported;
    while (!signal.aborted) {
      if (known === this.#changes) await this.#watchers.wait(signal);
      else {
        known = this.#changes;
        yield;
      }
    }
  }
}

function ended(code: number, stderr: string = "", stdout: string = ""): Promise<ExecResult> {
  return Promise.resolve({ code, stdout, stderr });
}

// The programs at work: fixtures are rendered, planned and written, as they will be.
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { FAMILIES } from "@turnout/core/backend";
import type { Context } from "@turnout/core/backend";
import { Ledger } from "@turnout/core";
import type { NodeSettings } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { createBpf, networkNamespaceCookie, perCpuValues, sumCounter } from "@turnout/host/bpf";
import type { BpfMap, LoadedObject, MapChoice } from "@turnout/host/bpf";
import { elementsOf, isInMap } from "../bytes/elements.ts";
import { HOOKS } from "../hooks.ts";
import { encodeId, STRUCTS } from "../bytes/layout.ts";
import { rowId } from "../names.ts";
import type { EbpfObject } from "../objects.ts";
import { maxEntries } from "../options.ts";
import type { EbpfFacts, EbpfOptions } from "../options.ts";
import { planDelta } from "../plan.ts";
import type { Step } from "../plan.ts";
import { renderRow } from "../render.ts";
import { renderSkeleton } from "../skeleton.ts";
import type { FlipperData } from "./flipper.ts";
import { FACTS, OPTIONS, PARTS, SETTINGS, stateOf } from "./states.ts";

/** What a scenario changes of the node beside its services. */
export interface Surroundings {
  readonly options?: EbpfOptions;
  readonly optedOut?: readonly string[];
  readonly settings?: Partial<NodeSettings>;
  readonly addresses?: EbpfFacts["addresses"];
}

/** Compiled programs and what their maps are made to say. */
export interface Proxy {
  readonly object: LoadedObject;
  map(name: string): BpfMap;
  /** Bring a state into force. Lists that nobody names go at once. */
  want(fixtures: readonly ServiceFixture[], surroundings?: Surroundings): void;
  /** The counters of a fixture's row. */
  counted(name: string, protocol?: "TCP" | "UDP", family?: "IPv4" | "IPv6"): Readonly<Record<string, number>>;
}

/** Load the programs of sockets, go into the cgroup and attach them to it; they go with this process. */
export async function startSockets(cgroup: string, objectFile: string, maps: ReturnType<typeof mapChoices> = mapChoices()): Promise<Proxy> {
  if (!existsSync(cgroup)) mkdirSync(cgroup);
  writeFileSync(`${cgroup}/cgroup.procs`, String(process.pid));
  const bpf = createBpf();
  const object = await bpf.load(objectFile, { maps });
  for (const [program, hook] of Object.entries(HOOKS)) bpf.attachToCgroup(object.program(program), cgroup, hook);
  return proxyOf(object);
}

/** Small maps. */
export function mapChoices(): Readonly<Record<string, MapChoice>> {
  const sizes = maxEntries({ services: 1024, endpoints: 4096, ranges: 1024, affinity: 1024, sockets: 1024 });
  return Object.fromEntries(Object.entries(sizes).map(([map, entries]) => [map, { maxEntries: entries }]));
}

/** Have the maps of an object say what fixtures come to. */
export function proxyOf(object: LoadedObject): Proxy {
  const ledgers = FAMILIES.map((family) => ({ family, ledger: new Ledger<EbpfObject>() }));
  return {
    object,
    map: (name) => object.map(name),
    want(fixtures, { options = OPTIONS, optedOut = [], settings = {}, addresses = FACTS.addresses } = {}): void {
      const host: EbpfFacts = { ...FACTS, addresses, hostNamespace: String(networkNamespaceCookie()), optedOut };
      for (const { family, ledger } of ledgers) {
        const { rows, node } = stateOf(fixtures, family, { ...SETTINGS, nodePortAddresses: undefined, ...settings });
        const context: Context<EbpfFacts> = { node, host };
        ledger.setAll(
          renderSkeleton(context, { ...PARTS, isKeeper: true }),
          new Map([...rows].map(([key, row]) => [key, renderRow(row, context, options)])),
        );
        for (const step of planDelta(ledger.delta(0)).steps) carryOut(object, step);
        ledger.commit(ledger.delta(0), {});
      }
    },
    counted(name, protocol = "TCP", family = "IPv4"): Readonly<Record<string, number>> {
      const map = object.map("counters");
      const value = map.lookup(encodeId(rowId(`shop/${name}:main/${protocol}`, family)));
      if (value === undefined) return {};
      if (perCpuValues(value, map.info.valueSize).length === 0) throw new Error("there is a CPU");
      const { fields } = STRUCTS.counters;
      return Object.fromEntries(Object.entries(fields).map(([field, [at]]) => [field, Number(sumCounter(value, map.info.valueSize, at))]));
    },
  };
}

/** All elements of a map, as text. */
export async function elementsIn(map: BpfMap): Promise<readonly string[]> {
  const found: string[] = [];
  const { info, valueBytes } = map;
  for await (const { count, keys, values } of map.read())
    for (let at = 0; at < count; at += 1)
      found.push(
        `${keys.toString("hex", at * info.keySize, (at + 1) * info.keySize)} ${values.toString("hex", at * valueBytes, (at + 1) * valueBytes)}`,
      );
  return found.toSorted();
}

/** Replace the endpoints of two services all the time (flipper.ts), until what this gives is called: it tells how often. */
export async function startFlips({ map }: Proxy): Promise<() => Promise<number>> {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const workerData: FlipperData = { services: map("services").info.id, endpoints: map("endpoints").info.id, shared };
  const worker = new Worker(new URL("flipper.ts", import.meta.url), { workerData });
  const failed = once(worker, "error");
  while (Atomics.load(shared, 1) < 2) await Promise.race([sleep(10), failed.then(([error]) => Promise.reject(error as Error))]);
  return async (): Promise<number> => {
    const rounds = Atomics.load(shared, 1);
    Atomics.store(shared, 0, 1);
    await once(worker, "exit");
    return rounds;
  };
}

function carryOut(object: LoadedObject, { verb, object: one }: Step): void {
  if (!isInMap(one)) return;
  for (const { map: name, key, value } of elementsOf(one)) {
    const map = object.map(name);
    if (verb === "write") map.update(key, name === "counters" ? Buffer.alloc(map.valueBytes) : value);
    else map.delete(key);
  }
}

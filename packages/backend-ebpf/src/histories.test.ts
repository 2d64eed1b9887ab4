import { Ledger } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { TestClock } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Applier } from "./apply.ts";
import { WRITTEN_MAPS } from "./bytes/elements.ts";
import type { WrittenMap } from "./bytes/elements.ts";
import { decodePlace, decodeService, STRUCTS } from "./bytes/layout.ts";
import { ListUse } from "./pins/list-use.ts";
import { NO_LIST, rangesId } from "./names.ts";
import type { EbpfObject } from "./objects.ts";
import { readLook } from "./observe.ts";
import { planDelta } from "./plan.ts";
import { decodeSourceRange, sortCIDRs } from "./bytes/ranges.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FakeMap, Killed } from "./test-support/fake-maps.ts";
import { FACTS, OPTIONS, PARTS, stateOf } from "./test-support/states.ts";

const { signal } = new AbortController();
const SIZES: Readonly<Record<WrittenMap, readonly [key: number, value: number]>> = {
  services: [STRUCTS.destination.bytes, STRUCTS.service.bytes],
  endpoints: [STRUCTS.place.bytes, STRUCTS.endpoint.bytes],
  source_ranges: [STRUCTS.source_range.bytes, 4],
  node_addresses: [16, 4],
  pod_ranges: [STRUCTS.pod_range.bytes, 4],
  primaries: [16, 16],
  counters: [8, STRUCTS.counters.bytes],
  opted_out: [8, 4],
  settings: [4, STRUCTS.settings.bytes],
};

/** One proxy after another, on maps in memory. */
class History {
  readonly maps: ReadonlyMap<string, FakeMap> = new Map(WRITTEN_MAPS.map((name) => [name, new FakeMap(...SIZES[name])]));
  readonly #family: IPFamily;
  readonly #clock = new TestClock(0);
  readonly #filled = new Set<IPFamily>();
  readonly #served = new Set<IPFamily>();
  #lists = new ListUse();
  #ledger = new Ledger<EbpfObject>();

  constructor(family: IPFamily) {
    this.#family = family;
    for (const map of this.maps.values())
      map.onCall = (): void => {
        const broken = brokenServices(this.maps);
        if (broken.length > 0) throw new Error(`services name what isn't whole: ${broken.join(", ")}`);
      };
  }

  /** Another process: it knows what the maps tell. */
  restart(): void {
    this.#ledger = new Ledger();
    this.#lists = new ListUse();
    for (const map of this.maps.values()) map.lifetime = Number.POSITIVE_INFINITY;
    const elements = new Map(WRITTEN_MAPS.map((name) => [name, [this.map(name).held()].filter(({ count }) => count > 0)]));
    const observed = readLook(
      {
        elements,
        links: new Map(),
        filters: new Map(),
        table: undefined,
        filled: [...this.#filled],
        serving: [...this.#served],
        folders: [],
      },
      { family: this.#family, isKeeper: false },
    );
    this.#ledger.adopt(observed);
    this.#lists.adopt(observed.objects.values());
  }

  /** Bring a state into force, and see to what lingers a second later. False: the process was killed. */
  async sync(fixtures: readonly ServiceFixture[]): Promise<boolean> {
    const { rows, node } = stateOf(fixtures, this.#family);
    const context = { node, host: FACTS };
    const skeleton = renderSkeleton(context, PARTS);
    this.#ledger.setAll(skeleton, new Map([...rows].map(([key, row]) => [key, renderRow(row, context, OPTIONS)])));
    this.#ledger.retryFailed();
    try {
      for (let time = 0; time < 3; time += 1) {
        await this.#apply();
        await this.#clock.advance(1000);
        this.#ledger.retryFailed();
      }
      return true;
    } catch (error) {
      if (error instanceof Killed) return false;
      throw error;
    }
  }

  /** What failed, and is not in force. */
  get failed(): readonly string[] {
    return [...this.#ledger.failed.keys()];
  }

  map(name: string): FakeMap {
    const map = this.maps.get(name);
    if (map === undefined) throw new Error(`no map ${name}`);
    return map;
  }

  /** Everything that is in the maps. */
  state(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries(
      [...this.maps].map(([name, { elements }]) => [name, [...elements].map((element) => element.join(" ")).toSorted()]),
    );
  }

  async #apply(): Promise<void> {
    const applier = new Applier({
      clock: this.#clock,
      lists: this.#lists,
      maps: () => Promise.resolve(this.maps),
      attach: () => Promise.resolve(new Map()),
      detach: () => new Map(),
      setTable: () => Promise.resolve(),
      mark: (family) => void this.#filled.add(family),
      serve: (family) => Promise.resolve(void this.#served.add(family)),
      removeFolder: () => true,
    });
    const delta = this.#ledger.delta(this.#clock.nowMs());
    this.#ledger.commit(delta, await applier.apply(planDelta(delta), signal), this.#clock.nowMs());
  }
}

/** Services that name a list which isn't there from beginning to end, or no whole source ranges. */
function brokenServices(maps: ReadonlyMap<string, FakeMap>): readonly string[] {
  const places = new Map<string, number>();
  for (const key of maps.get("endpoints")?.elements.keys() ?? []) {
    const { list } = decodePlace(Buffer.from(key, "hex"));
    places.set(list, (places.get(list) ?? 0) + 1);
  }
  const cidrs = new Map<string, string[]>();
  for (const key of maps.get("source_ranges")?.elements.keys() ?? []) {
    const range = decodeSourceRange(Buffer.from(key, "hex"));
    if (range !== undefined) cidrs.set(range.id, [...(cidrs.get(range.id) ?? []), range.cidr]);
  }
  const areWhole = (id: string): boolean => id === NO_LIST || rangesId(sortCIDRs(cidrs.get(id) ?? [])) === id;
  return [...(maps.get("services")?.elements ?? [])].flatMap(([key, value]) => {
    const service = decodeService(Buffer.from(value, "hex"));
    if (service === undefined) return [key];
    const choices = [service.pod, service.host, service.outside].filter(({ verdict }) => verdict === "serve");
    return areWhole(service.ranges) && choices.every(({ list, count }) => places.get(list) === count) ? [] : [key];
  });
}

const fixture: fc.Arbitrary<ServiceFixture> = fc
  .record({
    number: fc.integer({ min: 1, max: 5 }),
    local: fc.integer({ min: 0, max: 4 }),
    remote: fc.integer({ min: 0, max: 4 }),
    isLocal: fc.boolean(),
    hasAffinity: fc.boolean(),
    ranges: fc.option(fc.uniqueArray(fc.constantFrom("203.0.113.0/24", "198.51.100.7/32", "fd00:9::/32", "::/0"), { minLength: 1 }), {
      nil: undefined,
    }),
  })
  .map(({ number, local, remote, isLocal, hasAffinity, ranges }) => ({
    name: `svc-${number}`,
    number,
    local,
    remote,
    loadBalancerIPs: [`198.51.100.${number}`, `fd00:51::${number}`],
    spec: {
      type: "LoadBalancer",
      ...(ranges === undefined ? {} : { loadBalancerSourceRanges: ranges }),
      nodePort: 30_000 + number,
      ...(isLocal ? { externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" } : {}),
      ...(hasAffinity ? { sessionAffinity: "ClientIP" } : {}),
    },
  }));

const step = fc.record({
  fixtures: fc.uniqueArray(fixture, { selector: ({ number }) => number, maxLength: 5 }),
  space: fc.integer({ min: 4, max: 40 }),
  services: fc.integer({ min: 4, max: 18 }),
  ranges: fc.integer({ min: 0, max: 6 }),
  lifetime: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
  which: fc.constantFrom("endpoints", "services", "counters", "source_ranges"),
});

describe("whatever happens", () => {
  it("no service ever names a list that isn't whole, and with room enough the maps end as if nothing had happened", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom<IPFamily>("IPv4", "IPv6"), fc.array(step, { minLength: 1, maxLength: 6 }), async (family, steps) => {
        const history = new History(family);
        for (const { fixtures, space, services, ranges, lifetime, which } of steps) {
          history.map("endpoints").space = space;
          history.map("services").space = services;
          history.map("source_ranges").space = ranges;
          if (lifetime !== undefined) history.map(which).lifetime = lifetime;
          if (!(await history.sync(fixtures))) history.restart();
        }
        const last = steps.at(-1)?.fixtures ?? [];
        for (const name of ["endpoints", "services", "source_ranges"]) history.map(name).space = 1_000_000;
        for (const map of history.maps.values()) map.lifetime = Number.POSITIVE_INFINITY;
        expect([await history.sync(last), history.failed]).toEqual([true, []]);
        const fresh = new History(family);
        await fresh.sync(last);
        expect(history.state()).toEqual(fresh.state());
      }),
      { numRuns: 300 },
    );
  });
});

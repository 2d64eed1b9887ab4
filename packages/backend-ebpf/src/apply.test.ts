import { ProxyError } from "@turnout/core/backend";
import type { Outcome } from "@turnout/core/backend";
import { TestClock } from "@turnout/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Applier } from "./apply.ts";
import type { ApplierTools } from "./apply.ts";
import { STRUCTS } from "./bytes/layout.ts";
import { ListUse } from "./pins/list-use.ts";
import { listId, NO_LIST, rangesId } from "./names.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";
import type { Choice, EbpfObject, LinkObject, ListObject, ServiceObject } from "./objects.ts";
import type { Step } from "./plan.ts";
import { FakeMap } from "./test-support/fake-maps.ts";

const { signal } = new AbortController();

const listOf = (first: number, count: number): ListObject => {
  const value = Array.from({ length: count }, (_, index) => `10.${first}.${index >> 8}.${index & 255}:80`);
  return { kind: "list", key: listId(value), value };
};

function serviceOf(name: number, list: ListObject): ServiceObject {
  const choice: Choice = { verdict: "serve", list: list.key, count: list.value.length, masquerade: false };
  const value = {
    row: NO_LIST,
    tenant: NO_LIST,
    ranges: NO_LIST,
    affinitySeconds: 0,
    affinitySets: 0,
    podsPass: false,
    hostPass: false,
    isClusterIP: true,
    pod: choice,
    host: choice,
    outside: choice,
  };
  return { kind: "service", key: `10.96.0.${name}:80/TCP`, value };
}

const nodeAddress = (key: string): EbpfObject => ({ kind: "node-address", key, value: { hasNodePorts: false, hasListeners: false } });
const podRange = (key: string): EbpfObject => ({ kind: "pod-range", key, value: true });

const write = (object: EbpfObject): Step => ({ verb: "write", object });
const remove = (object: EbpfObject): Step => ({ verb: "delete", object });

let maps: Map<string, FakeMap>;
let lists: ListUse;
let clock: TestClock;
let done: string[];
let attach: ApplierTools["attach"];

function mapsFor(endpoints: number): Map<string, FakeMap> {
  return new Map([
    ["services", new FakeMap(STRUCTS.destination.bytes, STRUCTS.service.bytes)],
    ["endpoints", new FakeMap(STRUCTS.place.bytes, STRUCTS.endpoint.bytes, { maxEntries: endpoints })],
    ["counters", new FakeMap(8, STRUCTS.counters.bytes, { cpus: 2 })],
  ]);
}

beforeEach(() => {
  maps = mapsFor(1_000_000);
  lists = new ListUse();
  clock = new TestClock(0);
  done = [];
  attach = (links) => {
    done.push(...links.map(({ key }) => `attach ${key}`));
    return Promise.resolve(new Map());
  };
});

async function apply(steps: readonly Step[], untilMs?: number): Promise<Outcome<EbpfObject>> {
  const applier = new Applier({
    clock,
    lists,
    maps: () => Promise.resolve(maps),
    attach: (links, stop) => attach(links, stop),
    detach: (devices) => {
      done.push(...devices.map(({ key }) => `detach ${key}`));
      return new Map();
    },
    setTable: (isWanted) => {
      done.push(isWanted ? "table" : "no table");
      return Promise.resolve();
    },
    mark: (family) => void done.push(`mark ${family}`),
    serve: (family) => {
      done.push(`serve ${family}`);
      return Promise.resolve();
    },
    removeFolder: (path) => {
      done.push(`remove ${path}`);
      return path !== "in-use";
    },
  });
  return applier.apply({ steps }, signal, ...(untilMs === undefined ? [] : [{ untilMs }]));
}

const sizes = (): readonly (number | undefined)[] => ["services", "endpoints"].map((name) => maps.get(name)?.elements.size);

describe("Applier", () => {
  it("writes and deletes many elements in one call", async () => {
    const all = [listOf(1, 3), listOf(2, 2)];
    expect(await apply([...all.map(write), ...all.map((list, index) => write(serviceOf(index, list)))])).toEqual({});
    expect([maps.get("endpoints")?.calls, maps.get("services")?.calls, sizes()]).toEqual([["write 5"], ["write 2"], [2, 5]]);
    await apply(all.map((list, index) => remove(serviceOf(index, list))));
    expect(await apply(all.map(remove))).toEqual({});
    expect([maps.get("endpoints")?.calls, sizes()]).toEqual([
      ["write 5", "delete 5"],
      [0, 0],
    ]);
  });

  it("gives each CPU's counters zeros", async () => {
    await apply([write({ kind: "counter", key: "01".repeat(8), value: true })]);
    expect([...(maps.get("counters")?.elements ?? [])]).toEqual([["01".repeat(8), "00".repeat(2 * STRUCTS.counters.bytes)]]);
  });

  it("has what a map has no room for fail by itself, and writes what comes after it", async () => {
    maps = mapsFor(6);
    const [fits, large, alsoFits] = [listOf(1, 3), listOf(2, 4), listOf(3, 3)];
    const services = [serviceOf(1, fits), serviceOf(2, large), serviceOf(3, alsoFits)];
    const { failed } = await apply([...[fits, large, alsoFits].map(write), ...services.map(write)]);
    expect([...(failed ?? [])].map(([id, { message }]) => [id, message])).toEqual([
      [`list ${large.key}`, "[limit_reached] a BPF map is full: map fake: raise the option max-endpoints"],
      ["service 10.96.0.2:80/TCP", `[limit_reached] a service's endpoints or source ranges could not be written: list ${large.key}`],
    ]);
    expect(sizes()).toEqual([2, 6]);
  });

  it("refuses a service that is changed later while its list isn't there, also after everything was compared", async () => {
    maps = mapsFor(2);
    const large = listOf(1, 3);
    await apply([write(large), write(serviceOf(1, large))]);
    lists.adopt([]);
    const changed = { ...serviceOf(1, large), value: { ...serviceOf(1, large).value, affinitySeconds: 9 } };
    expect([...((await apply([write(changed)])).failed?.keys() ?? [])]).toEqual(["service 10.96.0.1:80/TCP"]);
    maps = mapsFor(3);
    expect(await apply([write(large), write(changed)])).toEqual({});
  });

  it("lets a list linger that is unwanted, and as long as a service in force names it", async () => {
    const [before, after] = [listOf(1, 2), listOf(2, 2)];
    await apply([write(before), write(serviceOf(1, before))]);
    const linger = { lingering: [{ object: before, afterMs: 1000 }] };
    expect(await apply([{ verb: "retire", object: before }])).toEqual(linger);
    expect(await apply([remove(before)])).toEqual(linger);
    await apply([write(after), write(serviceOf(1, after))]);
    expect(await apply([remove(before)])).toEqual({});
    expect(sizes()).toEqual([1, 2]);
    await apply([remove(serviceOf(1, after))]);
    expect(await apply([remove(after)])).toEqual({});
    expect(sizes()).toEqual([0, 0]);
  });

  it.each<[string, number, number, readonly [EbpfObject, EbpfObject]]>([
    ["node_addresses", 16, 4, [nodeAddress("192.0.2.1"), nodeAddress("2001:db8::1")]],
    ["pod_ranges", STRUCTS.pod_range.bytes, 4, [podRange("10.1.0.0/16"), podRange("fd00:1::/32")]],
    [
      "primaries",
      16,
      16,
      [
        { kind: "primary", key: "0.0.0.0", value: "192.0.2.1" },
        { kind: "primary", key: "::", value: "2001:db8::1" },
      ],
    ],
    [
      "opted_out",
      8,
      4,
      [
        { kind: "opt-out", key: "4097", value: true },
        { kind: "opt-out", key: "4098", value: true },
      ],
    ],
  ])("has what %s has no room for fail by itself, though no option makes it larger", async (name, keySize, valueSize, [fits, more]) => {
    maps.set(name, new FakeMap(keySize, valueSize, { maxEntries: 1 }));
    const list = listOf(1, 1);
    const { failed } = await apply([fits, more, list, serviceOf(1, list)].map(write));
    expect([...(failed ?? [])].map(([id, { message }]) => [id, message])).toEqual([
      [`${more.kind} ${more.key}`, "[limit_reached] a BPF map is full: map fake: no option makes it larger"],
    ]);
    expect([maps.get(name)?.elements.size, ...sizes()]).toEqual([1, 1, 1]);
  });

  it("treats source ranges as it does lists", async () => {
    const value = ["10.0.0.0/8", "192.0.2.0/24"];
    const [list, ranges] = [listOf(1, 1), { kind: "ranges", key: rangesId(value), value } as const];
    const service = { ...serviceOf(1, list), value: { ...serviceOf(1, list).value, ranges: ranges.key } };
    maps.set("source_ranges", new FakeMap(STRUCTS.source_range.bytes, 4, { maxEntries: 1 }));
    const { failed } = await apply([list, ranges, service].map(write));
    expect([...(failed ?? [])].map(([id, { message }]) => [id, message])).toEqual([
      [`ranges ${ranges.key}`, "[limit_reached] a BPF map is full: map fake: raise the option max-ranges"],
      ["service 10.96.0.1:80/TCP", `[limit_reached] a service's endpoints or source ranges could not be written: ranges ${ranges.key}`],
    ]);
    maps.set("source_ranges", new FakeMap(STRUCTS.source_range.bytes, 4, { maxEntries: 2 }));
    expect(await apply([ranges, service].map(write))).toEqual({});
    expect(await apply([remove(ranges)])).toEqual({ lingering: [{ object: ranges, afterMs: 1000 }] });
    expect(await apply([remove(service), remove(ranges)])).toEqual({});
    expect(maps.get("source_ranges")?.elements.size).toBe(0);
  });

  it("repairs a list in force where it can, and takes nothing of it away where it can't", async () => {
    maps = mapsFor(2);
    const list = listOf(1, 3);
    lists.adopt([{ ...list, value: list.value.slice(0, 2) }, serviceOf(1, list)]);
    expect((await apply([write(list)])).failed?.size).toBe(1);
    expect(sizes()).toEqual([0, 2]);
  });

  it("defers what there is no time for, but does at least one thing", async () => {
    const long = listOf(1, 5000);
    const rest = [listOf(2, 1), serviceOf(1, listOf(2, 1))] as const;
    const link: LinkObject = { kind: "link", key: "turnout_conn4", value: { cgroup: "7", programs: "" } };
    const outcome = await apply([...[long, ...rest].map(write), write(link)], 0);
    expect([...(outcome.deferred ?? [])]).toEqual([`list ${rest[0].key}`, "service 10.96.0.1:80/TCP", "link turnout_conn4"]);
    expect([sizes(), done]).toEqual([[0, 5000], []]);
    expect(await apply([...rest.map(write), write(link)], 1)).toEqual({});
    expect([sizes(), done]).toEqual([[1, 5001], ["attach turnout_conn4"]]);
  });

  it("marks a family before programs come to their hooks, and has links and folders fail or linger by themselves", async () => {
    const links = ["turnout_conn4", "turnout_conn6"].map((key): LinkObject => ({
      kind: "link",
      key,
      value: { cgroup: "7", programs: "" },
    }));
    const error = new ProxyError("timed_out", "not yet");
    const plain = attach;
    attach = async (some, stop) => new Map([...(await plain(some, stop)), ...some.slice(1).map((link) => [link, error] as const)]);
    const free: EbpfObject = { kind: "folder", key: "free", value: true };
    const used: EbpfObject = { kind: "folder", key: "in-use", value: true };
    const steps = [write({ kind: "filled", key: "IPv4", value: true }), ...links.map(write), remove(free), remove(used)];
    expect(await apply(steps)).toEqual({ failed: new Map([["link turnout_conn6", error]]), lingering: [{ object: used, afterMs: 1000 }] });
    expect(done).toEqual(["mark IPv4", "attach turnout_conn4", "attach turnout_conn6", "remove free", "remove in-use"]);
  });

  it("makes the table before programs come to devices, and takes these away before it", async () => {
    const device: EbpfObject = { kind: "device", key: "2-ingress", value: { program: "turnout_in", programs: "v1-00/packets-00" } };
    expect(await apply([write(TABLE_OBJECT), write(device)])).toEqual({});
    expect(await apply([remove(device), remove(TABLE_OBJECT)])).toEqual({});
    expect(done).toEqual(["table", "attach 2-ingress", "detach 2-ingress", "no table"]);
  });

  it("says that a family is served after all that is carried out before, and fails as a whole when it isn't", async () => {
    const link: LinkObject = { kind: "link", key: "turnout_conn4", value: { cgroup: "7", programs: "" } };
    const serving: EbpfObject = { kind: "serving", key: "IPv4", value: true };
    const folder: EbpfObject = { kind: "folder", key: "free", value: true };
    expect(await apply([write(link), remove(folder), write(serving)])).toEqual({});
    // Also when the time is up.
    expect(await apply([write(link), write(serving)], 0)).toEqual({});
    expect(done).toEqual(["attach turnout_conn4", "remove free", "serve IPv4", "attach turnout_conn4", "serve IPv4"]);
  });

  it("stops when it is told to", async () => {
    const stop = new AbortController();
    stop.abort();
    const applier = new Applier({
      clock,
      lists,
      maps: () => Promise.resolve(maps),
      attach,
      detach: () => new Map(),
      setTable: () => Promise.resolve(),
      mark: () => undefined,
      serve: () => Promise.resolve(),
      removeFolder: () => true,
    });
    await expect(applier.apply({ steps: [write(listOf(1, 1))] }, stop.signal)).rejects.toThrow("[canceled]");
  });
});

import {
  applyChangeSet,
  FAMILIES,
  isEqual,
  NodeView,
  OBJECT_KINDS,
  Store,
  type ChangeSet,
  type NodeSettings,
  type ServicePort,
} from "@turnout/core";
import { carryOut, POD_SETTINGS, type ObjectEvent } from "@turnout/core/testing";
import { deflateSync } from "node:zlib";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as wire from "../../gen/turnout/node/v1/node.ts";
import { toyChange, toyEndpoint, toyFull, toyNode, toyRow } from "../../test-support/toys.ts";
import { DeliveryReader, encodeDelivery, type Delivery, type EncodeOptions } from "./change-set-codec.ts";
import { readSettings, wireSettings } from "./node-codec.ts";
import { PackedReader, packRows } from "./packed-rows.ts";
import { encodeRow, RowReader } from "./row-codec.ts";

function parts(changes: ChangeSet, options?: EncodeOptions, eligibility?: Delivery["eligibility"]): wire.ChangeSet[] {
  return [...encodeDelivery({ changes, eligibility }, options)].map((bytes) => {
    const { response } = wire.WatchResponse.decode(bytes);
    if (response?.$case !== "changeSet") throw new Error("no change set came out");
    return response.value;
  });
}

/** There and back again. */
function carried(changes: ChangeSet, settings: NodeSettings, options?: EncodeOptions): ChangeSet | undefined {
  const reader = new DeliveryReader(changes.family, settings);
  const deliveries = parts(changes, options).map((part) => reader.receive(part));
  expect(deliveries.slice(0, -1).every((one) => one === undefined)).toBe(true);
  return deliveries.at(-1)?.changes;
}

const objectEvent: fc.Arbitrary<ObjectEvent> = fc.record({
  do: fc.constantFrom("service", "service", "slice", "slice", "node", "removeService", "removeSlice"),
  which: fc.nat(11),
  form: fc.nat(17),
});
const settingsArbitrary: fc.Arbitrary<NodeSettings> = fc.record({
  masqueradeAll: fc.boolean(),
  masqueradeBit: fc.nat(31),
  detectLocal: fc.constantFrom<NodeSettings["detectLocal"][]>(
    { mode: "ClusterCIDR", clusterCIDRs: [] },
    { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00::/64"] },
    { mode: "NodeCIDR" },
    { mode: "BridgeInterface", bridgeInterface: "cni0" },
    { mode: "InterfaceNamePrefix", interfaceNamePrefix: "veth" },
  ),
  nodePortAddresses: fc.constantFrom<(readonly string[] | undefined)[]>(undefined, [], ["primary", "10.0.0.0/8"]),
});

describe("change sets on the wire", () => {
  test("come out as they went in, whatever the world and however small the parts", () => {
    const survives = (objectEvents: readonly ObjectEvent[], settings: NodeSettings, partBytes: number): boolean => {
      const store = new Store();
      const views = FAMILIES.map((family) => new NodeView(store, { nodeName: "node1", family, settings }));
      for (const kind of OBJECT_KINDS) store.markSynced(kind);
      return [undefined, ...objectEvents].every((one) => {
        if (one !== undefined) carryOut(store, one);
        const taken = views.flatMap((view) => view.pull() ?? []);
        return taken.every((changes) => isEqual(carried(changes, settings, { partBytes }), changes));
      });
    };
    const worlds = fc.property(fc.array(objectEvent, { maxLength: 30 }), settingsArbitrary, fc.integer({ min: 1, max: 600 }), survives);
    expect(() => fc.assert(worlds, { numRuns: 60 })).not.toThrow();
  });

  test("keep what is there but empty apart from what is absent", () => {
    const [closed, open] = [[], undefined].map((sourceRanges): ServicePort["destinations"][number] => ({
      kind: "loadBalancerIP",
      address: "192.0.2.7",
      port: 80,
      ...(sourceRanges === undefined ? {} : { sourceRanges }),
      rules: [{ from: "anyone", to: "drop", masquerade: false }],
    }));
    const changes = toyFull([
      toyRow("a", { destinations: [closed!, open!], affinitySeconds: 0, healthCheck: { port: 1, readyLocal: 0 } }),
      toyRow("b", { endpoints: [toyEndpoint("10.1.0.5", { nodeName: "" })], cluster: [] }),
    ]);
    expect(carried(changes, changes.node!.settings)).toEqual(changes);
  });

  test("carry what was deleted, and the times of what triggered them", () => {
    const changes = toyChange({ delete: ["shop/cart:http/TCP", "shop/cart:/SCTP"], triggersMs: [1_700_000_000_000, 1] });
    expect(carried(changes, POD_SETTINGS)).toEqual(changes);
  });

  test("of a big state come in several messages, the node in the first one alone", () => {
    const rows = Array.from({ length: 100 }, (_, index) => toyRow(`s${index}`));
    const messages = parts(toyFull(rows), { partBytes: 1_000 });
    expect(messages.length).toBeGreaterThan(5);
    expect(messages.map(({ more }) => more)).toEqual([...messages.slice(1).map(() => true), false]);
    expect(messages.filter(({ node }) => node !== undefined)).toHaveLength(1);
    expect(applyChangeSet(new Map(), carried(toyFull(rows), toyNode().settings, { partBytes: 1_000 })!).size).toBe(100);
  });

  test("take the bytes of a row from whoever has them already", () => {
    let encoded = 0;
    const encode = (row: ServicePort): Uint8Array => {
      encoded += 1;
      return encodeRow(row);
    };
    expect(parts(toyFull([toyRow("a"), toyRow("b")]), { encode })[0]?.set).toHaveLength(2);
    expect(encoded).toBe(2);
  });

  test("carry the node's eligibility", () => {
    const reader = new DeliveryReader("IPv4", POD_SETTINGS);
    const [part] = parts(toyChange({}), {}, { isEligible: false, reason: "leaving" });
    expect(reader.receive(part!)?.eligibility).toEqual({ isEligible: false, reason: "leaving" });
  });

  test("parts of two change sets are not made one", () => {
    const reader = new DeliveryReader("IPv4", POD_SETTINGS);
    const [part] = parts(toyFull([toyRow("a"), toyRow("b")]), { partBytes: 1 });
    reader.receive(part!);
    expect(() => reader.receive({ ...part!, revision: 9, more: false })).toThrow(/\[feed_lost\].*parts of different change sets/);
  });
});

describe("packed rows", () => {
  const rows = Array.from({ length: 9 }, (_, index) => toyRow(`p${index}`));
  const own = toyRow("p4", { affinitySeconds: 7 });
  const delivery = { changes: toyFull([own]), eligibility: undefined, shared: [rows.slice(0, 5), rows.slice(5)] };
  const partsOf = (one: Delivery, options?: EncodeOptions): wire.ChangeSet[] =>
    [...encodeDelivery(one, options)].map((bytes) => {
      const { response } = wire.WatchResponse.decode(bytes);
      if (response?.$case !== "changeSet") throw new Error("no change set came out");
      return response.value;
    });
  const read = (changeSets: readonly wire.ChangeSet[]): Delivery | undefined => {
    const reader = new DeliveryReader("IPv4", POD_SETTINGS);
    return changeSets.map((part) => reader.receive(part)).at(-1);
  };

  test.each([1, 200, 1_000_000])("come out with a node's own in their place, in parts of %i bytes", (partBytes) => {
    const messages = partsOf(delivery, { partBytes });
    expect(read(messages)?.changes.set.toSorted((a, b) => (a.key < b.key ? -1 : 1))).toEqual(rows.map((row) => (row.key === own.key ? own : row)));
    // Whichever comes first.
    expect(read(messages.toReversed().map((one, at) => ({ ...one, more: at < messages.length - 1, node: messages[0]?.node })))?.changes.set).toHaveLength(9);
  });

  test("are made once for all", () => {
    let made = 0;
    const pack = (some: readonly ServicePort[]): Uint8Array => {
      made += some.length;
      return packRows(some);
    };
    expect(partsOf(delivery, { pack }).flatMap(({ packed }) => packed.map((one) => one.rows))).toEqual([5, 4]);
    expect(made).toBe(9);
  });

  const packed = wire.PackedRows.decode(packRows(rows));
  test("are read once for many nodes, of one family", () => {
    const shared = new PackedReader();
    const readFor = (affinitySeconds: number): readonly ServicePort[] => {
      const reader = new DeliveryReader("IPv4", POD_SETTINGS, shared);
      const changes = toyFull([toyRow("p4", { affinitySeconds })]);
      return partsOf({ changes, eligibility: undefined, shared: [rows] }).flatMap((part) => reader.receive(part)?.changes.set ?? []);
    };
    const [one, other] = [readFor(1), readFor(2)];
    expect(one.map((row, at) => row === other[at])).toEqual(one.map((_row, at) => at < 8));
    expect([one[8]?.affinitySeconds, other[8]?.affinitySeconds]).toEqual([1, 2]);
    expect(shared.rowsOf(packed, "IPv4", () => [])).toHaveLength(9);
    expect(shared.rowsOf(packed, "IPv6", () => [])).toHaveLength(0);
  });

  test.each([
    ["bytes that are not packed", { rows: 9, zlib: Buffer.from("no") }],
    ["bytes that end too early", { rows: 9, zlib: packed.zlib.subarray(0, -9) }],
    ["another number of rows than was said", { ...packed, rows: 8 }],
    ["more than a message may have", { rows: 0, zlib: deflateSync(Buffer.alloc(70_000_000)) }],
    ["what is no message", { rows: 0, zlib: deflateSync(Buffer.from("ffffff", "hex")) }],
  ])("are refused: %s", (_name, one) => {
    const [part] = partsOf({ ...delivery, shared: [] });
    expect(() => read([{ ...part!, packed: [one] }])).toThrow(/^\[feed_lost\]/);
  });
});

describe("settings on the wire", () => {
  test("come out as they went in", () => {
    const survives = (settings: NodeSettings): boolean =>
      isEqual(readSettings(wire.Settings.decode(wire.Settings.encode(wireSettings(settings)).finish())), settings);
    expect(() => fc.assert(fc.property(settingsArbitrary, survives))).not.toThrow();
  });

  test.each([
    ["a bit outside the mark", { masqueradeBit: 32 }],
    ["no mode", { detectLocal: undefined }],
    ["a range that is none", { detectLocal: { mode: { $case: "clusterCidr" as const, value: { cidrs: ["10.0.0.0/33"] } } } }],
    ["an endless address", { nodePortAddresses: { addresses: ["1".repeat(300)] } }],
  ])("are refused with %s", (_name, wrong) => {
    expect(() => readSettings({ ...wireSettings(POD_SETTINGS), ...wrong })).toThrow(/\[feed_lost\]/);
  });
});

describe("a row from somebody else's hand is refused", () => {
  const good = (): wire.ServicePort => wire.ServicePort.decode(encodeRow(toyRow("cart")));
  const endpoint = good().endpoints[0]!;
  const destination = good().destinations[0]!;
  const rule = destination.rules[0]!;

  test("not as it is", () => {
    expect(new RowReader("IPv4").read(good())).toEqual(toyRow("cart"));
  });

  const wrongs: readonly [name: string, wrong: Partial<Record<keyof wire.ServicePort, unknown>>][] = [
    ["a namespace with a way out", { namespace: "shop}; flush ruleset" }],
    ["no name", { name: "" }],
    ["a port name with a quote", { portName: 'http"' }],
    ["no protocol", { protocol: 0 }],
    ["a protocol of the future", { protocol: 9 }],
    ["an address that is none", { endpoints: [{ ...endpoint, ip: "10.1.0.256" }] }],
    ["an address written in another way", { endpoints: [{ ...endpoint, ip: "010.1.0.5" }] }],
    ["an address of the other family", { endpoints: [{ ...endpoint, ip: "fd00::1" }] }],
    ["an endpoint without a port", { endpoints: [{ ...endpoint, port: 0 }] }],
    ["a port above all ports", { endpoints: [{ ...endpoint, port: 65_536 }] }],
    ["a node's name with a space", { endpoints: [{ ...endpoint, nodeName: "node 1" }] }],
    ["a pool of endpoints that are not there", { cluster: [1] }],
    ["a pool that says one endpoint twice", { endpoints: [endpoint, { ...endpoint, port: 1 }], cluster: [0, 0] }],
    ["a topology of the future", { topology: 7 }],
    ["a destination of no kind", { destinations: [{ ...destination, kind: 0 }] }],
    ["a node port with an address", { destinations: [{ ...destination, kind: 4 }] }],
    ["a cluster IP without an address", { destinations: [{ ...destination, address: "" }] }],
    ["rules that decide nothing", { destinations: [{ ...destination, rules: [] }] }],
    ["rules that end early", { destinations: [{ ...destination, rules: [{ ...rule, from: 1 }] }] }],
    ["an origin of the future", { destinations: [{ ...destination, rules: [{ ...rule, from: 8 }, rule] }] }],
    ["a target of the future", { destinations: [{ ...destination, rules: [{ ...rule, to: 8 }] }] }],
    ["a rule about ranges without ranges", { destinations: [{ ...destination, rules: [{ ...rule, from: 4 }, rule] }] }],
    ["a range that is none", { destinations: [{ ...destination, sourceRanges: { cidrs: ["10.0.0.0"] } }] }],
    ["a health check without a port", { healthCheck: { port: 0, readyLocal: 1 } }],
  ];
  test.each(wrongs)("with %s", (_name, wrong) => {
    expect(() => new RowReader("IPv4").read({ ...good(), ...(wrong as Partial<wire.ServicePort>) })).toThrow(/\[feed_lost\]/);
  });
});

import { describe, expect, it } from "vitest";
import type { Context, KernelObject } from "../contract/backend.ts";
import type { ServicePort } from "../model/rows.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { createStoreView, upsertRaw } from "../testing/view.ts";
import { WantedRows } from "./wanted-rows.ts";

interface Facts {
  readonly addresses: readonly string[];
  readonly kernel: { readonly version: string };
  readonly hint?: string;
}

const FACTS: Facts = { addresses: ["172.18.0.1"], kernel: { version: "6.1" } };
const NODE = rawNode("node1", { addresses: ["172.18.0.1"] });
const SERVICES = [1, 2, 3].map((n) => rawService(`s${n}`, { clusterIP: `10.96.0.${n}` }));

/** Rows of a backend whose skeleton reads everything, and whose render reads what `read` does. */
class Rendering {
  readonly rendered: string[] = [];
  readonly #endpoints = new Map<string, number>();
  readonly rows: WantedRows<Facts, KernelObject>;
  skeletons = 0;
  readonly #view: ReturnType<typeof createStoreView>;

  constructor(read: (context: Context<Facts>, row: ServicePort) => unknown) {
    this.#view = createStoreView([NODE, ...SERVICES]);
    const backend = {
      skeleton: (context: Context<Facts>): readonly KernelObject[] => {
        this.skeletons++;
        return [{ kind: "base", key: "base", value: JSON.stringify(context) }];
      },
      render: (row: ServicePort, context: Context<Facts>): readonly KernelObject[] => {
        this.rendered.push(row.name.name);
        this.#endpoints.set(row.key, row.endpoints.length);
        return [{ kind: "row", key: row.key, value: JSON.stringify(read(context, row) ?? "") }];
      },
    };
    this.rows = new WantedRows(backend, FACTS, {});
    this.take();
  }

  upsert(raw: RawObject): void {
    upsertRaw(this.#view.store, raw);
    this.take();
  }

  /** Take in everything again, as from another node-state server. */
  takeAll(): void {
    const { node } = this.rows;
    const set = [...this.rows.rows.values()];
    this.rows.accept({
      instance: "another",
      revision: 1,
      family: "IPv4",
      full: true,
      set,
      delete: [],
      triggersMs: [],
      ...(node === undefined ? {} : { node }),
    });
  }

  removeService(name: string): void {
    this.#view.store.remove("Service", "shop", name);
    this.take();
  }

  take(): void {
    const changes = this.#view.pull();
    if (changes !== undefined) this.rows.accept(changes);
  }

  /** Rows rendered since this was asked last, by their Services. */
  news(): readonly string[] {
    return this.rendered.splice(0).toSorted();
  }

  /** How many endpoints rows had when they were rendered last, sorted. */
  endpoints(): readonly number[] {
    return [...this.#endpoints.values()].toSorted((a, b) => a - b);
  }

  base(): unknown {
    return JSON.parse(this.rows.ledger.wanted().get("base base")?.value as string);
  }
}

describe("new host facts", () => {
  it("that only the skeleton reads render no row again", () => {
    const rendering = new Rendering(({ host }) => host.kernel.version);
    expect(rendering.news()).toEqual(["s1", "s2", "s3"]);
    rendering.rows.setHost({ ...FACTS, addresses: ["172.18.0.1", "172.18.0.9"] });
    expect([rendering.news(), rendering.skeletons]).toEqual([[], 2]);
    expect(rendering.base()).toMatchObject({ host: { addresses: ["172.18.0.1", "172.18.0.9"] } });
    rendering.upsert(rawService("s4", { clusterIP: "10.96.0.4" }));
    expect(rendering.news()).toEqual(["s4"]);
  });

  it("that a row has read render all rows again", () => {
    const rendering = new Rendering(({ host }, { name }) => (name.name === "s2" ? host.addresses.length : 0));
    rendering.news();
    rendering.rows.setHost({ ...FACTS, kernel: { version: "6.2" } });
    expect(rendering.news()).toEqual([]);
    rendering.rows.setHost({ ...FACTS, addresses: [] });
    expect(rendering.news()).toEqual(["s1", "s2", "s3"]);
  });

  it.each<readonly [string, (context: Context<Facts>) => unknown]>([
    ["spreads them", ({ host }) => ({ ...host })],
    ["writes them out", ({ host }) => JSON.stringify(host)],
    ["takes them apart", ({ host: { addresses, ...rest } }) => [addresses, rest]],
    ["copies them", ({ host }) => structuredClone(host)],
  ])("count as read where a render %s", (_, read) => {
    const rendering = new Rendering(read);
    rendering.news();
    rendering.rows.setHost({ ...FACTS, kernel: { version: "6.2" } });
    expect(rendering.news()).toHaveLength(3);
  });

  it("with a field more render all rows again: nobody could read it before", () => {
    const rendering = new Rendering(({ host }) => host.hint);
    rendering.news();
    rendering.rows.setHost({ ...FACTS, hint: "new" });
    expect(rendering.news()).toHaveLength(3);
    rendering.rows.setHost({ ...FACTS, hint: "newer" });
    expect(rendering.news()).toHaveLength(3);
  });

  it("count where a render remembers what one before it has read", () => {
    const known = new WeakMap<Context<Facts>, number>();
    const rendering = new Rendering((context) => {
      const count = known.get(context) ?? context.host.addresses.length;
      known.set(context, count);
      return count;
    });
    rendering.news();
    rendering.rows.setHost({ ...FACTS, addresses: [] });
    expect(rendering.news()).toHaveLength(3);
  });

  it("that are no plain object count as read", () => {
    const asked: number[] = [];
    const backend = {
      skeleton: (): readonly KernelObject[] => [],
      render: (_row: ServicePort, { host }: Context<Map<string, number>>): readonly KernelObject[] => {
        asked.push(host.get("a") ?? 0);
        return [];
      },
    };
    const rows = new WantedRows(backend, new Map([["a", 1]]), {});
    const changes = createStoreView([NODE, ...SERVICES]).pull();
    if (changes !== undefined) rows.accept(changes);
    expect(asked).toEqual([1, 1, 1]);
  });
});

describe("rows that wait for their turn", () => {
  const rowsIn = ({ rows }: Rendering): readonly string[] =>
    [...rows.ledger.wanted().values()].flatMap(({ kind, key }) => (kind === "row" ? [key] : []));

  it("are wanted as they were before, until it comes", () => {
    const rendering = new Rendering(({ node }) => node.family);
    rendering.rows.commit();
    rendering.news();
    rendering.upsert(rawService("s4", { clusterIP: "10.96.0.4" }));
    rendering.removeService("s1");
    expect([rendering.news(), rowsIn(rendering).length, rendering.rows.pending]).toEqual([[], 3, ["shop/s4:http/TCP", "shop/s1:http/TCP"]]);
    rendering.rows.commit();
    expect(rendering.rows.pending).toHaveLength(2);
    rendering.rows.take(1);
    expect(rendering.news()).toEqual(["s4"]);
    rendering.rows.take(1);
    rendering.rows.commit();
    expect([rowsIn(rendering).length, rendering.rows.pending]).toEqual([3, []]);
  });

  it("go with a whole state, also those that are gone", () => {
    const rendering = new Rendering(({ node }) => node.family);
    rendering.rows.commit();
    rendering.removeService("s1");
    rendering.takeAll();
    expect([rowsIn(rendering), rendering.rows.areWaiting]).toEqual([["shop/s2:http/TCP", "shop/s3:http/TCP"], false]);
  });

  it("are rendered as they were when all are rendered again", () => {
    const rendering = new Rendering(({ node }) => node.addresses);
    rendering.rows.commit();
    rendering.removeService("s1");
    rendering.upsert(rawService("s4", { clusterIP: "10.96.0.4" }));
    rendering.news();
    rendering.upsert(rawNode("node1", { addresses: ["172.18.0.7"] }));
    expect([rendering.news(), rowsIn(rendering).length, rendering.rows.areWaiting]).toEqual([["s1", "s2", "s3"], 3, true]);
    rendering.rows.take(Number.POSITIVE_INFINITY);
    rendering.rows.commit();
    expect([rowsIn(rendering), rendering.rows.pending]).toEqual([["shop/s2:http/TCP", "shop/s3:http/TCP", "shop/s4:http/TCP"], []]);
  });
});

describe("a new node", () => {
  it("that only the skeleton reads renders no row again", () => {
    const rendering = new Rendering(({ node }) => node.family);
    rendering.news();
    rendering.upsert(rawNode("node1", { addresses: ["172.18.0.7"] }));
    expect([rendering.news(), rendering.skeletons]).toEqual([[], 2]);
    expect(rendering.base()).toMatchObject({ node: { addresses: ["172.18.0.7"] } });
  });

  it("that rows have read renders them again", () => {
    const rendering = new Rendering(({ node }) => node.addresses);
    rendering.news();
    rendering.upsert(rawNode("node1", { addresses: ["172.18.0.7"] }));
    expect(rendering.news()).toHaveLength(3);
  });
});

describe("more than a thousand endpoints", () => {
  const slices = (name: string, count: number): RawObject =>
    rawSlice(
      "s1",
      Array.from({ length: count }, (_, index) => ({ ip: `10.1.${index >> 8}.${index & 255}` })),
      { name },
    );

  it("render all rows again where they read it, and not before or after", () => {
    const rendering = new Rendering(({ hasManyEndpoints }) => hasManyEndpoints);
    rendering.upsert(slices("few", 1_000));
    rendering.news();
    rendering.upsert(slices("few", 1_001));
    expect(rendering.news()).toEqual(["s1", "s2", "s3"]);
    expect(rendering.rows.context).toMatchObject({ hasManyEndpoints: true });
    rendering.upsert(slices("few", 1_002));
    expect(rendering.news()).toEqual(["s1"]);
    rendering.upsert(slices("few", 3));
    expect(rendering.news()).toEqual(["s1", "s2", "s3"]);
  });

  it("render no row again that waits for its turn with them", () => {
    const rendering = new Rendering(({ hasManyEndpoints }) => hasManyEndpoints);
    rendering.rows.commit();
    rendering.news();
    rendering.upsert(slices("many", 1_001));
    expect([rendering.news(), rendering.rows.pending.length]).toEqual([["s1", "s2", "s3"], 3]);
    expect(rendering.endpoints()).toEqual([0, 0, 0]);
    rendering.rows.take(1);
    expect(rendering.endpoints()).toEqual([0, 0, 1_001]);
  });

  it("are counted without the rows that are gone", () => {
    const rendering = new Rendering(({ hasManyEndpoints }) => hasManyEndpoints);
    rendering.upsert(slices("many", 1_001));
    rendering.removeService("s1");
    expect(rendering.rows.context).toMatchObject({ hasManyEndpoints: false });
  });

  it("render no row again that doesn't read it", () => {
    const rendering = new Rendering(() => 0);
    rendering.news();
    rendering.upsert(slices("many", 1_001));
    expect([rendering.news(), rendering.skeletons]).toEqual([["s1"], 2]);
  });
});

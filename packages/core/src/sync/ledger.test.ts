import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Delta, KernelObject, Observed, Outcome } from "../contract/backend.ts";
import { objectId } from "../contract/backend.ts";
import { isEqual } from "../model/equal.ts";
import { keepPlaces } from "../model/places.ts";
import { ProxyError } from "../model/errors.ts";
import { Ledger } from "./ledger.ts";

function thing(key: string, value: number | string = 1): KernelObject {
  return { kind: "t", key, value };
}

function observed(...objects: readonly KernelObject[]): Observed<KernelObject> {
  return { objects: new Map(objects.map((object) => [objectId(object), object])), lingering: [] };
}

/** A delta in short. */
function short({ put, remove, lingering }: Delta<KernelObject>): Record<string, readonly string[]> {
  return {
    put: put.map(({ before, after }) => `${after.key}${before === undefined ? "" : ` was ${JSON.stringify(before.value)}`}`),
    remove: remove.map(({ key }) => key),
    ...(lingering.length === 0 ? {} : { lingering: lingering.map(({ object }) => object.key) }),
  };
}

function commit(ledger: Ledger<KernelObject>, outcome: Outcome<KernelObject> = {}): void {
  ledger.commit(ledger.delta(0), outcome);
}

/** A ledger whose rows are in force. */
function active(rows: Readonly<Record<string, readonly KernelObject[]>>): Ledger<KernelObject> {
  const ledger = new Ledger<KernelObject>();
  for (const [row, objects] of Object.entries(rows)) ledger.setRow(row, objects);
  commit(ledger);
  expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
  return ledger;
}

describe("what is wanted against what is applied", () => {
  it("new, changed, gone", () => {
    const ledger = active({ a: [thing("x"), thing("y")] });
    ledger.setRow("a", [thing("x", 2), thing("z")]);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1", "z"], remove: ["y"] });
    commit(ledger);
    expect([ledger.appliedCount, [...ledger.wanted().keys()]]).toEqual([2, ["t x", "t z"]]);
  });

  it("one identity is kind and key: another kind is another object", () => {
    const ledger = active({ a: [thing("x"), { kind: "u", key: "x", value: 1 }] });
    ledger.setRow("a", [thing("x")]);
    expect(ledger.delta(0).remove).toEqual([{ kind: "u", key: "x", value: 1 }]);
  });
});

describe("what is laid out as the host has it", () => {
  const list = (...value: readonly string[]): KernelObject => ({ kind: "list", key: "x", value });
  const layOut = (wanted: KernelObject, held: KernelObject): KernelObject => ({
    ...wanted,
    value: keepPlaces(wanted.value as readonly string[], held.value as readonly string[]),
  });
  const open = (): Ledger<KernelObject> => new Ledger(layOut);
  const values = (ledger: Ledger<KernelObject>): readonly unknown[] => ledger.delta(0).put.map(({ after }) => after.value);

  it("what is left of a list stays at its places, also when nothing of it was applied in between", () => {
    const ledger = open();
    ledger.setRow("a", [list("1", "2", "3", "4")]);
    commit(ledger);
    ledger.setRow("a", [list("2", "3", "4")]);
    expect(values(ledger)).toEqual([["4", "2", "3"]]);
    ledger.setRow("a", [list("0", "2", "3", "4")]);
    expect(values(ledger)).toEqual([["0", "2", "3", "4"]]);
    commit(ledger);
    ledger.setAll([], new Map([["a", [list("0", "1", "2", "3", "4")]]]));
    expect(values(ledger)).toEqual([["0", "2", "3", "4", "1"]]);
  });

  it("a new process takes the places that it finds, and puts back just what is missing", () => {
    const ledger = open();
    ledger.setRow("a", [list("1", "2", "3", "4")]);
    ledger.adopt(observed(list("3", "1", "4", "2")));
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
    expect(ledger.nextApplied(1)).toEqual([list("3", "1", "4", "2")]);
    ledger.trust(new Map([["list x", () => list("3", "", "4", "2")]]));
    expect(values(ledger)).toEqual([["3", "1", "4", "2"]]);
  });

  it("two owners agree about a list, whatever it was when each began to want it", () => {
    const ledger = open();
    ledger.setRow("a", [list("1", "2", "3")]);
    ledger.adopt(observed(list("3", "1", "2")));
    ledger.setRow("b", [list("1", "2", "3")]);
    ledger.setRow("a", []);
    expect([[...ledger.defects], short(ledger.delta(0))]).toEqual([[], { put: [], remove: [] }]);
  });
});

describe("shared objects", () => {
  it("the skeleton is one more owner", () => {
    const ledger = active({});
    ledger.setAll([thing("x")], new Map([["a", [thing("x")]]]));
    commit(ledger);
    ledger.setRow("a", []);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
    ledger.setAll([], new Map());
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: ["x"] });
  });

  it("a row may list one object twice", () => {
    const ledger = active({ a: [thing("x"), thing("x")] });
    ledger.setRow("a", [thing("x")]);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
    ledger.setRow("a", []);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: ["x"] });
  });

  it("in two forms at once are a defect, named; in one form they aren't", () => {
    const ledger = active({ a: [thing("x")], b: [thing("x")] });
    expect([...ledger.defects]).toEqual([]);
    ledger.setRow("b", [thing("x", 2)]);
    expect([...ledger.defects]).toEqual(["t x"]);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1"], remove: [] });
  });

  it("are none any more once they agree, and what the others want counts again when one gives up", () => {
    const ledger = active({ a: [thing("x")], b: [thing("x")] });
    ledger.setRow("c", [thing("x", 2)]);
    expect([...ledger.defects]).toEqual(["t x"]);
    ledger.setRow("d", [thing("x", 2)]);
    ledger.setRow("c", []);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1"], remove: [] });
    ledger.setRow("d", []);
    expect([...ledger.defects]).toEqual([]);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
    ledger.setRow("a", [thing("x", 3)]);
    ledger.setRow("b", [thing("x", 3)]);
    expect([...ledger.defects]).toEqual([]);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1"], remove: [] });
    for (const row of ["a", "b"]) ledger.setRow(row, []);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: ["x"] });
  });

  it("stay in two forms while one owner of each is left", () => {
    const ledger = active({ a: [thing("x")], b: [thing("x")] });
    ledger.setRow("c", [thing("x", 2)]);
    ledger.setRow("a", []);
    expect([...ledger.defects]).toEqual(["t x"]);
    ledger.setRow("c", []);
    expect([...ledger.defects]).toEqual([]);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
  });

  it("rows that trade objects at once are none, whoever comes first", () => {
    for (const order of ["ab", "ba"]) {
      const ledger = active({ a: [thing("x", "a")], b: [thing("y", "b")] });
      const traded = { a: [thing("y", "a")], b: [thing("x", "b")] };
      ledger.setRows(new Map(order.split("").map((row) => [row, traded[row as "a" | "b"]])));
      expect([...ledger.defects]).toEqual([]);
      expect(short(ledger.delta(0))["put"]?.toSorted()).toEqual(['x was "a"', 'y was "b"']);
      ledger.setRows(new Map([["a", []]]));
      expect(short(ledger.delta(0))).toEqual({ put: ['x was "a"'], remove: ["y"] });
    }
  });

  it("a new form of everything at once is none", () => {
    const ledger = active({ a: [thing("x")], b: [thing("x")] });
    ledger.setAll(
      [],
      new Map([
        ["a", [thing("x", 2)]],
        ["b", [thing("x", 2)]],
      ]),
    );
    expect([...ledger.defects]).toEqual([]);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1"], remove: [] });
  });
});

describe("R-58 adoption: the difference is against what the host holds", () => {
  it("differences to the host are what it lacks, has otherwise and has besides, but for what lingers or failed", () => {
    const ledger = active({ a: [thing("x"), thing("y"), thing("z")] });
    expect(ledger.differencesTo(observed(thing("x"), thing("y"), thing("z")))).toEqual([]);
    const differences = ledger.differencesTo(observed(thing("x"), thing("y", 9), thing("foreign")));
    expect(differences.map(({ id, fate }) => `${fate} ${id}`)).toEqual(["changed t y", "removed t z", "added t foreign"]);
    expect(ledger.differencesTo(undefined)).toEqual([]);
    expect(ledger.differencesTo({ ...observed(thing("x"), thing("y"), thing("z"), thing("old")), lingering: [thing("old")] })).toEqual([]);
    ledger.setRow("a", [thing("x")]);
    ledger.commit(ledger.delta(0), {
      failed: new Map([["t y", new ProxyError("tool_failed", "stays")]]),
      lingering: [{ object: thing("z"), afterMs: 0 }],
    });
    expect(ledger.differencesTo(observed(thing("x"), thing("z")))).toEqual([]);
    expect(ledger.differencesTo(observed(thing("x"), thing("y"), thing("z")))).toEqual([]);
  });
});

describe("outcomes", () => {
  it("what failed rests, also removals, and is in the difference again when it is due", () => {
    const ledger = active({ a: [thing("old"), thing("changed")] });
    ledger.setRow("a", [thing("changed", 2), thing("new")]);
    const failed = new Map(
      [thing("old"), thing("changed"), thing("new")].map((object) => [objectId(object), new ProxyError("tool_failed", "no")]),
    );
    commit(ledger, { failed });
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
    expect([[...ledger.failed.keys()], [...ledger.ownersOf(ledger.failed.keys())]]).toEqual([["t changed", "t new", "t old"], ["a"]]);
    ledger.retryFailed();
    expect(short(ledger.delta(0))).toEqual({ put: ["changed was 1", "new"], remove: ["old"] });
    expect([ledger.appliedCount, ledger.failed.size]).toEqual([2, 0]);
  });

  it("whose it is costs a look at what failed, and none at other rows", () => {
    let looks = 0;
    const counted = (row: string): readonly KernelObject[] =>
      new Proxy([thing(row)], {
        get(objects, name, receiver): unknown {
          looks++;
          return Reflect.get(objects, name, receiver);
        },
      });
    const ledger = new Ledger<KernelObject>();
    ledger.setRows(new Map(Array.from({ length: 1_000 }, (_, index) => [`r${index}`, counted(`r${index}`)])));
    ledger.setRow("other", [thing("r7")]);
    commit(ledger, { failed: new Map([["t r7", new ProxyError("tool_failed", "no")]]) });
    looks = 0;
    expect([...ledger.ownersOf(ledger.failed.keys())]).toEqual(["r7", "other"]);
    expect(looks).toBe(0);
    ledger.setRow("r7", []);
    ledger.setSkeleton([thing("r7")]);
    expect([...ledger.ownersOf(["t r7"])]).toEqual(["other"]);
  });

  it("what failed is tried at once when it is to be something else, and is no failure when it is wanted no more", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", [thing("x", 2), thing("y")]);
    commit(ledger, { failed: new Map(["t x", "t y"].map((id) => [id, new ProxyError("tool_failed", "no")])) });
    ledger.setRow("a", [thing("x", 3)]);
    expect([short(ledger.delta(0)), ledger.failed.size]).toEqual([{ put: ["x was 1"], remove: ["y"] }, 0]);
  });

  it("what failed may be there all the same: back in its old form it is put again, wanted no more it is removed", () => {
    const ledger = active({ a: [thing("x"), thing("y")] });
    ledger.setRow("a", [thing("x", 2), thing("y"), thing("new")]);
    const error = new ProxyError("tool_failed", "no");
    commit(ledger, { failed: new Map(["t x", "t new"].map((id) => [id, error])) });
    ledger.setRow("a", [thing("x"), thing("y")]);
    expect(short(ledger.delta(0))).toEqual({ put: ["x was 1"], remove: ["new"] });
    commit(ledger);
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
  });

  it("what failed is in doubt no more once the host was looked at", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", [thing("x", 2), thing("new")]);
    commit(ledger, { failed: new Map(["t x", "t new"].map((id) => [id, new ProxyError("tool_failed", "no")])) });
    ledger.setRow("a", [thing("x")]);
    ledger.adopt(observed(thing("x")));
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
  });

  it("what was given up while it was being applied is removed", () => {
    const ledger = new Ledger<KernelObject>();
    ledger.setRow("a", [thing("x")]);
    const delta = ledger.delta(0);
    ledger.setRow("a", []);
    ledger.commit(delta, {});
    expect(short(ledger.delta(0))).toEqual({ put: [], remove: ["x"] });
  });

  it("what lingers comes back when it is due, since when it lingers, until the backend names it no longer", () => {
    const ledger = active({ a: [thing("x"), thing("y")] });
    ledger.setRow("a", []);
    const [x, y] = [thing("x", "half"), thing("y", "half")];
    ledger.commit(ledger.delta(5), { lingering: [x, y].map((object) => ({ object, afterMs: 10 })) }, 7);
    expect([ledger.lingeringDueMs, ledger.delta(16).lingering, ledger.delta(16).nowMs]).toEqual([17, [], 16]);
    expect(ledger.delta(17).lingering).toEqual([x, y].map((object) => ({ object, sinceMs: 7 })));
    ledger.commit(ledger.delta(17), { lingering: [{ object: y, afterMs: 3 }] });
    expect([ledger.lingeringDueMs, ledger.delta(20).lingering]).toEqual([20, [{ object: y, sinceMs: 7 }]]);
    ledger.commit(ledger.delta(20), {});
    expect([ledger.lingeringDueMs, short(ledger.delta(90))]).toEqual([Number.POSITIVE_INFINITY, { put: [], remove: [] }]);
  });

  it("what lingers is remembered beside other changes, which need not name it", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", []);
    commit(ledger, { lingering: [{ object: thing("x"), afterMs: 10 }] });
    ledger.setRow("b", [thing("other")]);
    commit(ledger);
    expect(short(ledger.delta(10))).toEqual({ put: [], remove: [], lingering: ["x"] });
  });

  it("what lingers and is wanted again comes with what the host holds of it, and lingers no more once it is in force", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", []);
    const half = thing("x", "half");
    commit(ledger, { lingering: [{ object: half, afterMs: 10 }] });
    ledger.setRow("b", [thing("x", 2)]);
    const put = [{ after: thing("x", 2), lingering: half }];
    expect([ledger.delta(10).put, ledger.delta(10).lingering, ledger.lingeringDueMs]).toEqual([put, [], Number.POSITIVE_INFINITY]);
    ledger.commit(ledger.delta(10), { failed: new Map([["t x", new ProxyError("tool_failed", "no")]]) });
    ledger.retryFailed();
    expect(ledger.delta(10).put).toEqual(put);
    commit(ledger);
    ledger.setRow("b", []);
    expect(ledger.delta(10)).toEqual({ put: [], remove: [thing("x", 2)], lingering: [], nowMs: 10 });
  });

  it("what lingers and can't be finished off rests, like all that fails", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", []);
    commit(ledger, { lingering: [{ object: thing("x"), afterMs: 10 }] });
    ledger.commit(ledger.delta(10), { failed: new Map([["t x", new ProxyError("tool_failed", "no")]]) });
    expect([[...ledger.failed.keys()], short(ledger.delta(20)), ledger.lingeringDueMs]).toEqual([
      ["t x"],
      { put: [], remove: [] },
      Number.POSITIVE_INFINITY,
    ]);
    ledger.retryFailed();
    expect(short(ledger.delta(20))).toEqual({ put: [], remove: [], lingering: ["x"] });
    ledger.commit(ledger.delta(20), { failed: new Map([["t x", new ProxyError("tool_failed", "no")]]) });
    ledger.adopt(observed());
    expect(ledger.failed.size).toBe(0);
  });

  it("what is found to linger is due at once, and its time counts on", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", []);
    ledger.commit(ledger.delta(5), { lingering: [{ object: thing("x"), afterMs: 1_000 }] });
    ledger.adopt({ objects: new Map(), lingering: [thing("x"), thing("y")] });
    expect(ledger.delta(9).lingering).toEqual([
      { object: thing("x"), sinceMs: 5 },
      { object: thing("y"), sinceMs: 9 },
    ]);
  });
});

describe("what is deferred", () => {
  it("comes again, in turn with what changed since, and counts neither as in force nor as failed", () => {
    const ledger = active({ a: [thing("gone")] });
    ledger.setRow("a", []);
    ledger.setRow("b", [thing("x"), thing("y"), thing("z")]);
    commit(ledger, { deferred: new Set(["t gone", "t y", "t z"]) });
    expect([[...ledger.deferred], ledger.appliedCount, ledger.failed.size]).toEqual([["t y", "t z", "t gone"], 2, 0]);
    ledger.setRow("c", [thing("newer")]);
    expect(short(ledger.delta(0))).toEqual({ put: ["newer", "y", "z"], remove: ["gone"] });
    commit(ledger);
    expect([ledger.deferred.size, short(ledger.delta(0))]).toEqual([0, { put: [], remove: [] }]);
  });

  it("is in force in the end though newer changes alone fill each turn", () => {
    const ledger = new Ledger<KernelObject>();
    const names = Array.from({ length: 50 }, (_, at) => String(at));
    for (const name of names) ledger.setRow(`shop/${name}`, [thing(`s${name}`)]);
    for (let turn = 0; turn < 4; turn++) {
      ledger.setRows(new Map(names.map((name) => [`evil/${name}`, [thing(`e${name}`, String(turn))]])));
      const delta = ledger.delta(0);
      ledger.commit(delta, { deferred: new Set(delta.put.slice(40).map(({ after }) => objectId(after))) });
    }
    expect([...ledger.owing()].filter((row) => row.startsWith("shop/"))).toEqual([]);
  });

  it("is forgotten when nobody wants it any more, or it is found to be there", () => {
    const ledger = new Ledger<KernelObject>();
    for (const key of ["x", "y", "z"]) ledger.setRow(key, [thing(key)]);
    commit(ledger, { deferred: new Set(["t x", "t y", "t z"]) });
    ledger.setRow("x", []);
    expect(short(ledger.delta(0))).toEqual({ put: ["y", "z"], remove: [] });
    ledger.adopt(observed(thing("y")));
    expect([...ledger.deferred]).toEqual(["t z"]);
  });

  it("lingers on where it was to be finished off", () => {
    const ledger = active({ a: [thing("x")] });
    ledger.setRow("a", []);
    commit(ledger, { lingering: [{ object: thing("x"), afterMs: 10 }] });
    ledger.commit(ledger.delta(10), { deferred: new Set(["t x"]) });
    expect(short(ledger.delta(10))).toEqual({ put: [], remove: [], lingering: ["x"] });
  });
});

describe("what is kept for a row", () => {
  it("stays in whatever form the host has it, while what others want goes on", () => {
    const ledger = active({ a: [thing("x"), thing("shared")], b: [thing("y"), thing("shared")] });
    ledger.setRow("b", [thing("z")]);
    ledger.keepRow("a", ["t x", "t shared"]);
    expect(short(ledger.delta(0))).toEqual({ put: ["z"], remove: ["y"] });
    ledger.setRow("a", []);
    expect(short(ledger.delta(0))).toEqual({ put: ["z"], remove: ["y", "x", "shared"] });
  });

  it("is what the host held at first where nobody knows better, but for what rows account for", () => {
    const ledger = new Ledger<KernelObject>();
    ledger.adopt(observed(thing("a"), thing("b"), thing("c")));
    ledger.setRow("b", [thing("b")]);
    ledger.keepRow("a", undefined);
    commit(ledger);
    ledger.account();
    ledger.setRow("b", []);
    ledger.adopt(observed(thing("a"), thing("b"), thing("c"), thing("foreign")));
    expect(short(ledger.delta(0)).remove).toEqual(["b", "foreign"]);
    ledger.setRow("a", []);
    expect(short(ledger.delta(0)).remove).toEqual(["a", "b", "c", "foreign"]);
  });

  it("is nothing once everything was in force", () => {
    const ledger = new Ledger<KernelObject>();
    ledger.adopt(observed(thing("a")));
    ledger.account();
    ledger.keepRow("late", undefined);
    expect(short(ledger.delta(0)).remove).toEqual(["a"]);
  });
});

describe("properties", () => {
  const step = fc.record({
    row: fc.constantFrom("a", "b", "c"),
    // The value follows from the key: a sound backend never wants one object in two forms.
    keys: fc.subarray(["1", "2", "3", "4"]),
    what: fc.constantFrom("nothing", "commit", "fail", "fail when done", "adopt", "forget"),
  });

  it("whatever happened, applying the difference leaves exactly what is wanted", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (history) => {
        const ledger = new Ledger<KernelObject>();
        const host = new Map<string, KernelObject>();
        const wanted = new Map<string, readonly string[]>();
        const doubtful = new Set<string>();
        const change = ({ put, remove }: Delta<KernelObject>): void => {
          for (const object of remove) expect(host.delete(objectId(object)) || doubtful.has(objectId(object))).toBe(true);
          for (const { before, after } of put) {
            const isAsExpected = isEqual(host.get(objectId(after)), before);
            expect(isAsExpected || doubtful.has(objectId(after))).toBe(true);
            host.set(objectId(after), after);
          }
        };
        const carryOut = (): void => {
          const delta = ledger.delta(0);
          change(delta);
          ledger.commit(delta, {});
        };
        for (const { row, keys, what } of history) {
          wanted.set(row, keys);
          ledger.setRow(
            row,
            keys.map((key) => thing(key, key)),
          );
          if (what === "commit") carryOut();
          if (what === "adopt") ledger.adopt({ objects: new Map(host), lingering: [] });
          if (what === "forget") {
            host.clear();
            ledger.adopt(undefined);
          }
          if (what === "fail" || what === "fail when done") {
            const delta = ledger.delta(0);
            const ids = [...delta.put.map(({ after }) => after), ...delta.remove].map(objectId);
            if (what === "fail when done") change(delta);
            for (const id of ids) doubtful.add(id);
            ledger.commit(delta, { failed: new Map(ids.map((id) => [id, new ProxyError("tool_failed", "no")])) });
          }
        }
        ledger.retryFailed();
        carryOut();
        const union = [...new Set([...wanted.values()].flat())].map((key) => `t ${key}`).toSorted();
        expect([...host.keys()].toSorted()).toEqual(union);
        expect([...ledger.wanted().keys()].toSorted()).toEqual(union);
        expect(ledger.appliedCount).toBe(union.length);
        expect(ledger.defects.size).toBe(0);
        expect(short(ledger.delta(0))).toEqual({ put: [], remove: [] });
      }),
    );
  });
});

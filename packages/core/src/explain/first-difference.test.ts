import { expect, it } from "vitest";
import { objectId } from "../contract/backend.ts";
import type { KernelObject, ObjectWords } from "../contract/backend.ts";
import { firstDifference } from "./first-difference.ts";

const object = (key: string, value: string): KernelObject => ({ kind: "chain", key, value });
const held = (...objects: readonly KernelObject[]): ReadonlyMap<string, KernelObject> =>
  new Map(objects.map((one) => [objectId(one), one]));
const [own, other] = ["01e2f00ddeadbeef/2", "2131f00ddeadbeef/2"];

it("a digest is no reason for anybody", () => {
  const cause = firstDifference({ wanted: [object("a", own)], unwanted: [], held: held(object("a", other)) });
  expect(cause?.says).toBe("changed in the kernel: chain a");
});

it("values that say something are compared", () => {
  const cause = firstDifference({ wanted: [object("a", "drop")], unwanted: [], held: held(object("a", "accept")) });
  expect(cause?.says).toBe('changed in the kernel: chain a: "accept" instead of "drop"');
});

it("the backend's own words go before values, with what shows the difference", () => {
  const describe = (): ObjectWords => ({ what: "a", show: "nft list map m", differs: "the kernel sends to A, should: B" });
  const wanted = [object("a", own), object("b", own)];
  expect(firstDifference({ wanted, unwanted: [], held: held(object("a", other), object("b", other)) }, describe)).toMatchObject({
    id: "kernel_changed",
    says: "changed in the kernel: the kernel sends to A, should: B; also changed: the kernel sends to A, should: B",
    show: ["nft list map m"],
  });
});

it("three differences are named, each with its words and what shows it, and all are told to programs", () => {
  const describe = ({ key }: KernelObject, found?: KernelObject): ObjectWords => ({
    what: `chain ${key}`,
    show: `nft list chain ${key}`,
    ...(found === undefined ? {} : { differs: `chain ${key} is empty` }),
  });
  const wanted = ["a", "b", "c", "d", "e"].map((key) => object(key, own));
  const cause = firstDifference({ wanted, unwanted: [], held: held(object("b", ""), object("d", other), object("e", own)) }, describe);
  expect(cause).toMatchObject({
    id: "kernel_missing",
    says: "removed from the kernel, or never written to it: chain a; also changed: chain b is empty; also removed: chain c (and 1 more)",
    differences: ["removed: chain a", "changed: chain b is empty", "removed: chain c", "changed: chain d is empty"],
    show: ["nft list chain a", "nft list chain b", "nft list chain c"],
  });
});

it("what packets go as well without, as other flags leave it out, tells of other flags only where nothing else is missing", () => {
  const describe = ({ key }: KernelObject): ObjectWords => ({ what: key, ...(key === "counter" ? { isOfOtherSettings: true } : {}) });
  const wanted = [object("counter", own), object("b", own)];
  expect(firstDifference({ wanted, unwanted: [], held: held() }, describe)?.id).toBe("kernel_missing");
  const cause = firstDifference({ wanted, unwanted: [], held: held(object("b", own)) }, describe);
  expect(cause?.id).toBe("other_flags");
  expect(cause?.says).toContain("counter is not there, and other flags make none");
});

it("what other flags have made comes first, and blames nobody for the rest", () => {
  const describe = ({ key }: KernelObject, found?: KernelObject): ObjectWords => ({
    what: key,
    ...(found !== undefined && key === "b" ? { isOfOtherSettings: true } : {}),
  });
  const wanted = [object("a", own), object("b", own)];
  expect(firstDifference({ wanted, unwanted: [], held: held(object("b", other)) }, describe)).toMatchObject({
    id: "other_flags",
    isSure: false,
  });
});

it("what differs besides what other flags have made is told with it, where the backend has words for it", () => {
  const describe = ({ key }: KernelObject): ObjectWords => ({
    what: key,
    show: `nft list ${key}`,
    ...(key === "b" ? { isOfOtherSettings: true } : { differs: "the kernel sends to A, should: B" }),
  });
  const wanted = [object("a", own), object("b", own)];
  const cause = firstDifference({ wanted, unwanted: [], held: held(object("a", other), object("b", other)) }, describe);
  expect(cause).toMatchObject({ id: "other_flags", show: ["nft list b", "nft list a"] });
  expect(cause?.says).toMatch(/Besides, which flags need not explain, the kernel sends to A, should: B$/);
});

it("what is missing is told with how much else is, and a part that is gone like the whole", () => {
  const wanted = [object("a", own), object("b", own), object("c", own)];
  const saysOf = (...found: readonly KernelObject[]): string | undefined =>
    firstDifference({ wanted, unwanted: [], held: held(...found) })?.says;
  const removed = "removed from the kernel, or never written to it: chain a";
  expect(saysOf()).toBe(`${removed} and all else that this takes (2 more)`);
  expect(saysOf(object("c", own))).toBe(`${removed}; also removed: chain b`);
  expect(saysOf(object("b", own), object("c", own))).toBe(removed);
  const describe = (): ObjectWords => ({ what: "element a of map m", isGone: true });
  expect(firstDifference({ wanted, unwanted: [], held: held(object("a", other), ...wanted.slice(1)) }, describe)).toMatchObject({
    id: "kernel_missing",
    says: "removed from the kernel, or never written to it: element a of map m",
  });
});

it("long values are shown from where they begin to differ", () => {
  const rule = (port: number): string =>
    `-m comment --comment "shop/cart:http with a very long name of its own" -j DNAT --to-destination 10.1.0.7:${port}`;
  const cause = firstDifference({ wanted: [object("a", rule(8080))], unwanted: [], held: held(object("a", rule(9090))) });
  expect(cause?.says).toBe('changed in the kernel: chain a: …ation 10.1.0.7:9090" instead of …ation 10.1.0.7:8080"');
});

it("what is there besides and nobody wants is told where nothing else differs", () => {
  const mine = object("a", own);
  const alongside = [object("b", own), object("c", own)];
  expect(firstDifference({ wanted: [mine], unwanted: [], held: held(mine), alongside })).toMatchObject({
    id: "kernel_stale",
    says: "added to the kernel, or left in it: chain b (and 1 more), which no Service asks for",
  });
  expect(firstDifference({ wanted: [mine], unwanted: [], held: held(), alongside })).toMatchObject({ id: "kernel_missing" });
});

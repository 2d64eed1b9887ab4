import { describe, expect, test } from "vitest";
import { toyChange, toyEndpoint, toyFull, toyRow } from "../../test-support/toys.ts";
import { RecentChanges } from "./recent-changes.ts";

const CART = toyRow("cart");
const BEFORE = new Map([[CART.key, CART]]);
const two = [toyEndpoint("10.1.0.5"), toyEndpoint("10.1.0.6")];

describe("a change", () => {
  test.each([
    ["of everything", toyFull([CART]), "everything was told anew: 1 Service ports"],
    ["that brings a row", toyChange({ set: [toyRow("web")] }), "shop/web:http/TCP is new: 1 of 1 endpoints serve"],
    ["that takes one", toyChange({ delete: [CART.key] }), "shop/cart:http/TCP is gone"],
    ["of who serves", toyChange({ set: [{ ...CART, endpoints: two, cluster: [0, 1] }] }), "shop/cart:http/TCP: 1 endpoints served, now 2"],
    ["of who doesn't", toyChange({ set: [{ ...CART, endpoints: two }] }), "shop/cart:http/TCP: 1 endpoints, now 2; 1 serve"],
    ["of addresses", toyChange({ set: [{ ...CART, destinations: [] }] }), "shop/cart:http/TCP: its addresses or rules changed"],
    [
      "of settings",
      toyChange({ set: [{ ...CART, affinitySeconds: 7 }] }),
      "shop/cart:http/TCP: its endpoints or settings changed; 1 serve",
    ],
  ])("%s is told in words", (_name, changes, text) => {
    const recent = new RecentChanges();
    recent.note(changes, BEFORE, 5);
    expect(recent.since(0)).toEqual([{ sequence: 1, atMs: 5, family: "IPv4", text }]);
  });
});

test("who asks gets what is new to him, and everything where the process is another", () => {
  const recent = new RecentChanges();
  for (let n = 0; n < 3; n++) recent.note(toyChange({ delete: [`row ${n}`] }), BEFORE, n);
  expect(recent.since(2).map(({ text }) => text)).toEqual(["row 2 is gone"]);
  expect([recent.since(3), recent.newest]).toEqual([[], 3]);
  expect(recent.since(70)).toHaveLength(3);
});

test("no more than two hundred are kept, and of many at once it is said how many", () => {
  const recent = new RecentChanges();
  recent.note(toyChange({ set: Array.from({ length: 5_000 }, (_, n) => toyRow(`s${n}`)) }), BEFORE, 1);
  expect(recent.since(0)).toHaveLength(200);
  recent.note(toyChange({ delete: Array.from({ length: 300 }, (_, n) => `row ${n}`) }), BEFORE, 1);
  expect(recent.newest).toBe(201 + 201);
  expect(recent.since(201)[0]?.text).toBe("row 0 is gone");
});

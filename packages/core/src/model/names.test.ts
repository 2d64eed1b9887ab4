import { describe, expect, it } from "vitest";
import { isDNSName, isLabelValue, namespacedName, printableName, rowKey } from "./names.ts";

describe("names for people and keys", () => {
  const name = { namespace: "shop", name: "cart", port: "http", protocol: "TCP" } as const;
  it("R-04 the protocol is part of the key, not of the printed name", () => {
    expect([printableName(name), printableName({ ...name, port: "" })]).toEqual(["shop/cart:http", "shop/cart"]);
    expect([rowKey("shop", "cart", "http", "UDP"), rowKey("shop", "cart", "", "TCP")]).toEqual(["shop/cart:http/UDP", "shop/cart:/TCP"]);
  });

  it("cluster-scoped names have no namespace", () => {
    expect([namespacedName("", "node1"), namespacedName("shop", "cart")]).toEqual(["node1", "shop/cart"]);
  });
});

describe("what may be a name", () => {
  it.each(["a", "A", "0", "a-b", "a.b", "a".repeat(253)])("%s", (text) => expect(isDNSName(text)).toBe(true));
  it.each(["", "-a", "a-", ".a", "a.", "a_b", "a b", "a/b", "a:b", "a\n", "ä", "a".repeat(254), "a\u0000"])("not %j", (text) =>
    expect(isDNSName(text)).toBe(false),
  );
  it.each(["a_b", "a.b-c", "a".repeat(63)])("%s is a label value", (text) => expect(isLabelValue(text)).toBe(true));
  it.each(["", "_a", "a_", "a b", "a\n", "a".repeat(64)])("%j is none", (text) => expect(isLabelValue(text)).toBe(false));
});

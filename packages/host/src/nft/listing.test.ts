import { describe, expect, it } from "vitest";
import { elementComment, elementText, readListing, verdictText } from "./listing.ts";

const print = (...entries: readonly unknown[]): string => JSON.stringify({ nftables: [{ metainfo: { version: "1.0.6" } }, ...entries] });

describe("readListing", () => {
  it("reads sets, maps, and chains with where they are called in and their rules' comments", () => {
    const place = { family: "ip", table: "t" };
    const text = print(
      { table: { family: "ip", name: "t", handle: 1 } },
      { set: { ...place, name: "s", elem: ["10.0.0.1"] } },
      { map: { ...place, name: "m" } },
      { chain: { ...place, name: "base", type: "nat", hook: "output", prio: -100, policy: "accept" } },
      { chain: { ...place, name: "shut", type: "filter", hook: "input", prio: 0, policy: "drop" } },
      { chain: { ...place, name: "idle" } },
      { rule: { ...place, chain: "base", comment: "abc/2", expr: [] } },
      { rule: { ...place, chain: "base", expr: [] } },
    );
    expect(readListing(text)).toEqual({
      sets: new Map<string, unknown>([
        ["s", ["10.0.0.1"]],
        ["m", []],
      ]),
      chains: new Map([
        ["base", { hook: "type nat hook output priority -100", isDropping: false, comments: ["abc/2", ""] }],
        ["shut", { hook: "type filter hook input priority 0", isDropping: true, comments: [] }],
        ["idle", { hook: undefined, isDropping: false, comments: [] }],
      ]),
    });
  });

  it("takes nothing for nothing, and no text that isn't JSON", () => {
    expect(readListing("{}")).toEqual({ sets: new Map(), chains: new Map() });
    expect(() => readListing("Error: No such file")).toThrow(/^\[tool_failed\] what nft listed can't be read/);
  });
});

describe("elements", () => {
  it.each([
    ["a plain one", "10.0.0.1", "10.0.0.1", ""],
    ["a number", 80, "80", ""],
    ["parts", { concat: ["10.0.0.1", "tcp", 80] }, "10.0.0.1 . tcp . 80", ""],
    ["one with a comment", { elem: { val: { concat: ["tcp", 80] }, comment: "shop/cart" } }, "tcp . 80", "shop/cart"],
    ["one with a timeout", { elem: { val: "10.0.0.1", timeout: 60 } }, "10.0.0.1", ""],
  ])("are text: %s", (_, element, text, comment) => {
    expect([elementText(element), elementComment(element)]).toEqual([text, comment]);
  });

  it("lead to verdicts", () => {
    expect([{ drop: null }, { goto: { target: "refuse" } }].map(verdictText)).toEqual(["drop", "goto refuse"]);
  });
});

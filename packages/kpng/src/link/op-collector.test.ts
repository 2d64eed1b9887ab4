import { beforeEach, describe, expect, test } from "vitest";
import { OpItem } from "../gen/kpng/localv1/localv1.ts";
import { OpCollector } from "./op-collector.ts";

const bytesOf = (op: OpItem["Op"]): Buffer => Buffer.from(OpItem.encode({ Op: op }).finish());
const SYNC = Buffer.from("0a00", "hex");
const RESET = Buffer.from("2200", "hex");
const set = (path: string, value = "x", kind: 1 | 2 = 1): Buffer =>
  bytesOf({ $case: "Set", value: { Ref: { Set: kind, Path: path }, Bytes: Buffer.from(value) } });
const gone = (path: string, kind: 1 | 2 = 1): Buffer => bytesOf({ $case: "Delete", value: { Set: kind, Path: path } });

/** What each Sync among these messages gives: `path=value`, `-path`. */
function ran(...messages: readonly Buffer[]): readonly (readonly string[])[] {
  const ops = new OpCollector();
  return messages.flatMap((message) => {
    const news = ops.receive(message);
    return news === undefined ? [] : [news.map(({ path, bytes }) => (bytes === undefined ? `-${path}` : `${path}=${bytes.toString()}`))];
  });
}

describe("ops", () => {
  const rows: readonly [what: string, messages: readonly Buffer[], news: readonly (readonly string[])[]][] = [
    ["count at their Sync", [RESET, set("a"), set("b"), SYNC, set("c")], [["a=x", "b=x"]]],
    ["may be none: an empty state is one", [RESET, SYNC], [[]]],
    ["need no Reset on a new stream", [set("a"), SYNC], [["a=x"]]],
    [
      "are differences after that",
      [set("a"), set("b"), SYNC, set("c"), gone("a"), SYNC],
      [
        ["a=x", "b=x"],
        ["c=x", "-a"],
      ],
    ],
    ["in any order, the last of a path counts", [gone("a"), set("a", "1"), set("a", "2"), SYNC], [["a=2"]]],
    ["of one path in two sets are two", [set("a", "1", 1), set("a", "2", 2), SYNC, gone("a", 2), SYNC], [["a=1", "a=2"], ["-a"]]],
    ["that say what is there say nothing", [set("a"), SYNC, set("a"), gone("nobody"), SYNC], [["a=x"], []]],
    ["that take back what they did say nothing", [SYNC, set("a"), gone("a"), SYNC], [[], []]],
    [
      "behind a Reset are the whole state",
      [set("a"), set("b"), SYNC, RESET, set("b"), set("c"), SYNC],
      [
        ["a=x", "b=x"],
        ["c=x", "-a"],
      ],
    ],
    ["before a Reset are forgotten", [set("a"), SYNC, set("b"), RESET, set("a"), SYNC], [["a=x"], []]],
    ["of kinds nobody knows are passed over", [Buffer.alloc(0), Buffer.from("aa0100", "hex"), set("a"), SYNC], [["a=x"]]],
    ["without a path or bytes are items too", [Buffer.from("1200", "hex"), SYNC, Buffer.from("1a00", "hex"), SYNC], [["="], ["-"]]],
  ];
  test.each(rows)("%s", (_what, messages, news) => expect(ran(...messages)).toEqual(news));

  describe("of a stream that broke are forgotten, and what was in force", () => {
    const shown = (news: ReturnType<OpCollector["receive"]>): unknown => news?.map(({ path, bytes }) => [path, bytes?.toString()]);
    /** After three of which the next stream has told one, and that anew. */
    let ops: OpCollector;
    let first: ReturnType<OpCollector["receive"]>;
    beforeEach(() => {
      ops = new OpCollector();
      for (const message of [set("a"), set("b"), set("c"), SYNC, set("half")]) ops.receive(message);
      ops.restart();
      ops.receive(set("b", "new"));
      first = ops.receive(SYNC);
    });

    test("stays while the next one told less, and is no news when it is told again", () => {
      expect([shown(first), ops.missing]).toEqual([[["b", "new"]], 2]);
      ops.receive(set("a"));
      expect([ops.receive(SYNC), ops.missing]).toEqual([[], 1]);
      ops.receive(set("c", "other"));
      expect([shown(ops.receive(SYNC)), ops.missing]).toEqual([[["c", "other"]], 0]);
    });

    test("goes when as much is told as before", () => {
      for (const message of [set("d"), set("e")]) ops.receive(message);
      expect(shown(ops.receive(SYNC))).toEqual([
        ["d", "x"],
        ["e", "x"],
        ["a", undefined],
        ["c", undefined],
      ]);
      expect(ops.missing).toBe(0);
    });

    test("goes when it is said to be gone, or taken for gone, once", () => {
      ops.receive(gone("a"));
      expect([shown(ops.receive(SYNC)), ops.missing]).toEqual([[["a", undefined]], 1]);
      expect(shown(ops.release())).toEqual([["c", undefined]]);
      expect([ops.release(), ops.missing]).toEqual([[], 0]);
    });

    test("is not forgotten over another break", () => {
      ops.restart();
      expect([ops.receive(SYNC), ops.missing]).toEqual([[], 3]);
    });
  });

  test("that are no messages are refused", () => expect(() => new OpCollector().receive(Buffer.from("0aff", "hex"))).toThrow(/./));
});

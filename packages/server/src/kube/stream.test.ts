import { describe, expect, it } from "vitest";
import { backoffMs, Retries, type Problem } from "./backoff.ts";
import { LineSplitter } from "./line-splitter.ts";
import { collect, readList } from "./list-page.ts";
import { parseRefusal } from "./refusal.ts";
import { parseWatchEvent } from "./watch-event.ts";

describe("LineSplitter", () => {
  it("gives the same lines however the bytes are cut", () => {
    const bytes = Buffer.from('{"a":"é"}\n\n{"b":"日本"}\n{"rest"');
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter();
      const lines: string[] = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.push(bytes.subarray(at, at + size)));
      expect([size, lines]).toEqual([size, ['{"a":"é"}', '{"b":"日本"}']]);
    }
  });

  it("gives up a line that does not end, and forgets the length of those that did", () => {
    const splitter = new LineSplitter(100);
    for (let line = 0; line < 50; line++) expect(splitter.push(Buffer.from(`${"a".repeat(9)}\n${"b".repeat(9)}`))).toHaveLength(1);
    expect(() => {
      for (;;) splitter.push(Buffer.alloc(30, "a"));
    }).toThrow("[limit_reached] a line has more than 100 bytes");
  });
});

/** A body in pieces of so many bytes. */
async function* pieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield Promise.resolve(bytes.subarray(at, at + size));
}

/** Read a list of Services; gives its items with what else it says. */
async function listed(text: string, size = 7): Promise<object> {
  const items: object[] = [];
  const page = await readList(pieces(text, size), "Service", (object) => items.push(object));
  return { ...page, items };
}

describe("readList", () => {
  const metadata = { resourceVersion: "7" };
  it("hands on each item however the bytes are cut; an item without a name is left out", async () => {
    const [first, second] = [
      { metadata: { name: "a" }, text: '}],"items":[{"\\' },
      { metadata: { name: "é" }, list: [[{}], "]"] },
    ];
    const items = [first, {}, null, 7, "}", [[]], second];
    const more = { ...metadata, continue: "more", annotations: { items: [{ metadata: { name: "no item" } }], text: ',"items":[' } };
    for (const indent of [0, 2]) {
      const text = JSON.stringify({ kind: "ServiceList", metadata: more, items, rest: [1, { a: [] }] }, undefined, indent);
      for (let size = 1; size < 40; size++)
        expect(await listed(text, size)).toEqual({ items: [first, second], revision: "7", token: "more" });
    }
    expect(await listed(JSON.stringify({ kind: "ServiceList", metadata, items: null }))).toEqual({ items: [], revision: "7", token: "" });
    expect(await listed(JSON.stringify({ kind: "ServiceList", metadata, items: [] }))).toEqual({ items: [], revision: "7", token: "" });
  });

  const external: readonly (readonly [text: string, what: string])[] = [
    ["", "not JSON"],
    ["<html>Welcome", "not JSON"],
    ["null", "no list of Services"],
    [JSON.stringify({ metadata, items: [] }), "no list of Services"],
    [JSON.stringify({ kind: "PodList", metadata, items: [] }), "no list of Services"],
    [JSON.stringify({ kind: "PodList", metadata, items: [{ metadata: { name: "pod" } }] }), "no list of Services"],
    [JSON.stringify({ kind: "Status", metadata, items: [] }), "no list of Services"],
    [JSON.stringify({ kind: "ServiceList", items: [] }), "no list of Services"],
    [JSON.stringify({ kind: "ServiceList", metadata: { resourceVersion: "" }, items: [] }), "no list of Services"],
    [JSON.stringify({ kind: "ServiceList", metadata, items: {} }), "no items"],
    [JSON.stringify({ kind: "ServiceList", metadata, items: [{ metadata: { name: "a" } }] }).slice(0, -2), "not JSON"],
  ];
  it.each(external)("takes %s for no empty list", async (text, what) => {
    await expect(listed(text)).rejects.toThrow(what);
  });

  it("reads a list whose kind follows its items, and hands on nothing of another kind", async () => {
    const sorted = (kind: string, items: readonly object[]): string => JSON.stringify({ apiVersion: "v1", items, kind, metadata });
    const [bare, typed] = [{ metadata: { name: "a" } }, { kind: "Service", metadata: { name: "b" } }];
    for (let size = 1; size < 40; size++)
      expect(await listed(sorted("ServiceList", [typed, bare]), size)).toEqual({ items: [typed, bare], revision: "7", token: "" });
    expect(await listed(sorted("ServiceList", []))).toMatchObject({ items: [] });
    const items: object[] = [];
    const read = (text: string, max?: number): Promise<object> => readList(pieces(text, 7), "Service", (object) => items.push(object), max);
    for (const text of [
      sorted("PodList", [bare]),
      sorted("ServiceList", [{ ...bare, kind: "Pod" }]),
      JSON.stringify({ items: [bare], metadata }),
    ])
      await expect(read(text)).rejects.toThrow("no list of Services");
    await expect(
      read(
        sorted(
          "ServiceList",
          Array.from({ length: 100 }, () => bare),
        ),
        1_000,
      ),
    ).rejects.toThrow("[limit_reached] more than 1000");
    expect(items).toEqual([]);
    await read(
      sorted(
        "ServiceList",
        Array.from({ length: 100 }, () => typed),
      ),
      1_000,
    );
    expect(items).toHaveLength(100);
  });

  it("has one item in memory at a time, whatever the length of the list, and gives up one that does not end", async () => {
    const item = JSON.stringify({ metadata: { name: "a" }, text: "x".repeat(900) });
    async function* long(): AsyncGenerator<Buffer> {
      yield Buffer.from('{"kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[');
      for (let count = 0; count < 1_000; count++) yield Promise.resolve(Buffer.from(`${count === 0 ? "" : ","}${item}`));
      yield Buffer.from("]}");
    }
    let count = 0;
    await readList(long(), "Service", () => count++, 1_000);
    expect(count).toBe(1_000);
    const endless = readList(pieces(`{"kind":"ServiceList","items":[{"a":"${"x".repeat(2_000)}`, 100), "Service", () => count++, 1_000);
    await expect(endless).rejects.toThrow("[limit_reached] an item of the list has more than 1000 bytes");
  });

  it("is given only answers that fit into memory", async () => {
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(100);
    }
    await expect(collect(endless(), 1_000)).rejects.toThrow("[limit_reached] the answer has more than 1000 bytes");
  });
});

describe("parseWatchEvent", () => {
  const metadata = { name: "a", resourceVersion: "7" };
  it("reads the five types", () => {
    const parse = (type: string, object: object): unknown =>
      parseWatchEvent(JSON.stringify({ type, object: { kind: "Service", ...object } }), "Service");
    expect(parse("ADDED", { metadata })).toMatchObject({ type: "put", revision: "7" });
    expect(parse("MODIFIED", { metadata })).toMatchObject({ type: "put", revision: "7" });
    expect(parse("DELETED", { metadata })).toMatchObject({ type: "delete", revision: "7" });
    const end = { "k8s.io/initial-events-end": "true" };
    expect(parse("BOOKMARK", { metadata })).toEqual({ type: "bookmark", revision: "7", endsInitialEvents: false });
    expect(parse("BOOKMARK", { metadata: { ...metadata, annotations: end } })).toMatchObject({ endsInitialEvents: true });
    expect(parse("ERROR", { code: 410, reason: "Expired" })).toMatchObject({ type: "error", refusal: { status: 410 } });
  });

  it("leaves an object that is nested too deeply to who reads it", () => {
    const object = `{"kind":"Service","metadata":${JSON.stringify(metadata)},"spec":${'{"a":'.repeat(500_000)}1${"}".repeat(500_000)}}`;
    const event = parseWatchEvent(`{"type":"ADDED","object":${object}}`, "Service");
    expect(JSON.stringify(event)).toContain("nested too deeply");
  });

  const external: readonly (readonly [line: string, what: string])[] = [
    ["{", "not JSON"],
    ["\u0000\ufffd", "not JSON"],
    ["1", "not an event"],
    ["[]", "not an event"],
    ["{}", "without a named object"],
    ['{"type":"ADDED"}', "without a named object"],
    ['{"type":"ADDED","object":{"kind":"Service","metadata":{"name":7}}}', "without a named object"],
    ['{"type":"ADDED","object":{"kind":"Service","metadata":{"name":"a"}}}', "without resourceVersion"],
    ['{"type":"DELETED","object":{"kind":"Service","metadata":{"name":"a","resourceVersion":""}}}', "without resourceVersion"],
    ['{"type":"BOOKMARK"}', "without resourceVersion"],
    [JSON.stringify({ type: "DELETED", object: { kind: "Pod", metadata } }), "no Service"],
    [JSON.stringify({ type: "NEW", object: { kind: "Service", metadata } }), "a type that Kubernetes doesn't have"],
  ];
  it.each(external)("refuses %s", (line, what) => {
    expect(() => parseWatchEvent(line, "Service")).toThrow(what);
  });
});

describe("parseRefusal", () => {
  const cases: readonly (readonly [name: string, args: Parameters<typeof parseRefusal>, expected: object])[] = [
    ["a Status", [404, undefined, '{"code":404,"reason":"NotFound","message":"no"}'], { status: 404, reason: "NotFound", message: "no" }],
    ["text of a proxy", [502, undefined, "<html>Bad gateway"], { status: 502, message: "<html>Bad gateway", retryAfterMs: 0 }],
    ["JSON cut short", [500, undefined, '{"code":'], { status: 500, message: '{"code":' }],
    ["Retry-After", [429, "7", ""], { status: 429, retryAfterMs: 7_000 }],
    ["Retry-After of a year", [503, "31536000", ""], { retryAfterMs: 300_000 }],
    ["retryAfterSeconds without end", [429, undefined, '{"details":{"retryAfterSeconds":1e999}}'], { retryAfterMs: 300_000 }],
    ["Retry-After as a date, which Kubernetes never sends", [429, "Wed, 21 Oct 2026 07:28:00 GMT", ""], { retryAfterMs: 0 }],
    ["retryAfterSeconds", [429, undefined, '{"details":{"retryAfterSeconds":2}}'], { status: 429, retryAfterMs: 2_000 }],
    [
      "a future revision by its cause",
      [504, undefined, '{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}'],
      { isFutureRevision: true },
    ],
    [
      "a future revision by its text",
      [504, undefined, '{"message":"Too large resource version: 9, current: 1"}'],
      { isFutureRevision: true },
    ],
  ];
  it.each(cases)("%s", (_name, args, expected) => {
    expect(parseRefusal(...args)).toMatchObject(expected);
  });
});

describe("backoffMs", () => {
  const cases: readonly (readonly [name: string, args: readonly [number, number, number], expected: number])[] = [
    ["the first", [1, 0, 0.5], 800],
    ["doubles", [3, 0, 0.5], 3_200],
    ["is bounded", [1_000, 0, 0.5], 30_000],
    ["is spread down to half", [1, 0, 0], 400],
    ["and up by half", [1_000, 0, 0.999_99], 45_000],
    ["is never less than the server asks for", [1, 60_000, 0], 60_000],
    ["which is spread upwards", [1, 60_000, 0.5], 75_000],
    ["but no longer than five minutes, spread included", [1, 300_000, 0.93], 300_000],
  ];
  it.each(cases)("%s", (_name, [failures, retryAfterMs, random], expected) => {
    expect(backoffMs(failures, retryAfterMs, random, 800, 30_000)).toBe(expected);
  });
});

describe("retries", () => {
  const limits = { backoffBaseMs: 800, backoffMaxMs: 30_000, cheapBackoffMaxMs: 5_000 };
  /** The waits after so many failures, one of each in turn. */
  function waits(...problems: readonly Problem[]): readonly number[] {
    const retries = new Retries(limits, () => 0.5);
    return problems.map((problem) => {
      retries.note(problem);
      return retries.waitMs(problem, 0);
    });
  }
  const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

  it("of connections, and with credentials, stay frequent, as they cost next to nothing", () => {
    expect(waits(...times(6, "unreached" as const))).toEqual([800, 1_600, 3_200, 5_000, 5_000, 5_000]);
    expect(waits(...times(5, "unauthorized" as const))).toEqual([800, 1_600, 3_200, 5_000, 5_000]);
  });

  it("of what the server refuses become rare", () => {
    expect(waits(...times(7, "refused" as const))).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
  });

  it("begin anew with each step that was reached, and what it refuses counts on through an outage", () => {
    expect(waits("unreached", "unreached", "refused", "unreached")).toEqual([800, 1_600, 800, 800]);
    expect(waits("unauthorized", "unauthorized", "refused", "unauthorized")).toEqual([800, 1_600, 800, 800]);
    expect(waits("refused", "refused", "unreached", "refused")).toEqual([800, 1_600, 800, 3_200]);
  });

  it("all begin anew when it has worked for a while", () => {
    const retries = new Retries(limits, () => 0.5);
    for (const problem of ["unreached", "unauthorized", "refused"] as const) retries.note(problem);
    retries.reset();
    expect([retries.count("unreached"), retries.count("unauthorized"), retries.count("refused")]).toEqual([0, 0, 0]);
  });
});

import { ProxyError, Store } from "@turnout/core";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ObjectSink } from "../source/object-sink.ts";
import { openSource, parseSourceSpec } from "./source.ts";
import { eventually, RecordingLog, TestClock, testDirectory } from "../test-support/world.ts";

describe("parseSourceSpec", () => {
  it("reads kube and file:PATH", () => {
    expect(parseSourceSpec("kube")).toEqual({ kind: "kube" });
    expect(parseSourceSpec("file:/etc/a:b.yaml")).toEqual({ kind: "file", path: "/etc/a:b.yaml" });
  });

  it("reads api:TARGET", () => {
    expect(parseSourceSpec("api:unix:///run/x.sock")).toEqual({ kind: "api", target: "unix:///run/x.sock" });
    expect(parseSourceSpec("api:tls://[fd00::1]:12090")).toEqual({ kind: "api", target: "tls://[fd00::1]:12090" });
  });

  it.each([
    "api:/run/x.sock",
    "api:unix:run/x.sock",
    "api:unix:///",
    "api:unix:///run/",
    `api:unix:///${"x".repeat(120)}`,
    "api:tcp://a:1",
  ])("refuses %j as a target", (text) => expect(() => parseSourceSpec(text)).toThrow(/^\[invalid_object\]/));

  it.each(["", "kubernetes", "api:", "file:", "file", "http://x", "kube "])("refuses %j in one line", (text) => {
    let thrown: unknown;
    try {
      parseSourceSpec(text);
    } catch (error) {
      thrown = error;
    }
    expect(ProxyError.is(thrown, "invalid_object")).toBe(true);
    expect(String(thrown)).toMatch(/--source is not understood: ".*": write kube, file:PATH or api:unix:\/\/\/path$/);
  });
});

it("feeds core's store", async () => {
  const directory = await testDirectory();
  const stop = new AbortController();
  const log = new RecordingLog();
  const store = new Store();
  const sink: ObjectSink = store;
  await writeFile(join(directory, "a.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\nnot: kubernetes\n");
  const source = openSource({ kind: "file", path: directory }, { clock: new TestClock(), log, random: () => 0.5, env: {} });
  const running = source.run(sink, stop.signal);
  await eventually(() => store.isSynced);
  stop.abort();
  await running;
  expect(log.of("warn")).toEqual([`warn ${join(directory, "a.yaml")}:5: has no kind: add apiVersion and kind`]);
});

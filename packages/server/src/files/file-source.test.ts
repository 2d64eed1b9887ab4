import { appendFile, mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProxyError, type Issue } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileReader } from "./file-reader.ts";
import { scanPath } from "./file-scan.ts";
import { createFileSource, type FileTimings } from "./file-source.ts";
import { eventually, RecordingLog, RecordingSink, TestClock, testDirectory } from "../test-support/world.ts";

/** Polling is off, so that what is seen is seen by watching. */
const QUICK: Partial<FileTimings> = { debounceMs: 10, graceMs: 60, pollMs: 3_600_000 };

let directory: string;
let sink: RecordingSink;
let log: RecordingLog;
let issues: Issue[];
/** What the source said of its health, without repetitions. */
let health: string[];
let clock: TestClock;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  directory = await testDirectory();
  sink = new RecordingSink();
  log = new RecordingLog();
  clock = new TestClock();
  issues = [];
  health = [];
  stop = new AbortController();
  running = undefined;
});

afterEach(async () => {
  stop.abort();
  await running;
});

const at = (...names: readonly string[]): string => join(directory, ...names);

function service(name: string, port = 80): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec:
  clusterIP: 10.96.0.10
  ports: [{ port: ${port} }]
`;
}

async function follow(path: string = directory, timings: Partial<FileTimings> = {}): Promise<void> {
  const report = (issue: Issue): void => {
    issues.push(issue);
  };
  const onHealth = (part: string, problem: string): void => {
    const word = `${part} ${problem === "" ? "followed" : "away"}`;
    if (health.at(-1) !== word) health.push(word);
  };
  const source = createFileSource({ path, clock, log, report, onHealth, timings: { ...QUICK, ...timings } });
  running = source.run(sink, stop.signal);
  await Promise.race([sink.until((seen) => seen.isSynced), running]);
}

async function expectObjects(...ids: readonly string[]): Promise<void> {
  await sink.until(({ objects }) => JSON.stringify([...objects.keys()].sort()) === JSON.stringify(ids));
  expect([...sink.objects.keys()].sort()).toEqual(ids);
}

/** Change something on disk and wait until the source has seen it and is at rest, which its long sleep tells. */
async function change(act: () => Promise<void>): Promise<void> {
  const rests = (): number => clock.sleeps.filter((ms) => ms === QUICK.pollMs).length;
  await eventually(() => clock.sleeps.at(-1) === QUICK.pollMs);
  const before = rests();
  await act();
  await eventually(() => rests() > before);
}

describe("what is read", () => {
  it("is every manifest below a directory, JSON or YAML, and nothing else", async () => {
    await mkdir(at("deep", "er"), { recursive: true });
    await mkdir(at(".git"));
    await writeFile(at("a.yaml"), `${service("a1")}---\n# a comment\n---\n${service("a2")}`);
    await writeFile(at("b.yml"), service("b"));
    await writeFile(at("deep", "er", "c.json"), JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }));
    await writeFile(at("notes.txt"), service("no"));
    await writeFile(at(".d.yaml.swp"), service("no"));
    await writeFile(at(".hidden.yaml"), service("no"));
    await writeFile(at(".git", "e.yaml"), service("no"));
    await follow();
    expect([...sink.objects.keys()].sort()).toEqual(["Node /n1", "Service shop/a1", "Service shop/a2", "Service shop/b"]);
    expect(issues).toEqual([]);
  });

  it("may be one file with any name", async () => {
    await writeFile(at("services"), service("cart"));
    await follow(at("services"));
    expect([...sink.objects.keys()]).toEqual(["Service shop/cart"]);
  });

  it("is synced when there is nothing in it", async () => {
    await follow();
    expect(sink.calls).toEqual(["=Node", "=ServiceCIDR", "=Service", "=EndpointSlice"]);
  });

  it("must be there at the start", async () => {
    const source = createFileSource({ path: at("nope"), clock, log });
    const error: unknown = await source.run(sink, stop.signal).catch((thrown: unknown) => thrown);
    expect(ProxyError.is(error, "not_found")).toBe(true);
    expect(String(error)).toContain(at("nope"));
  });

  it("comes before markSynced, all of it, also when a file is being written at the start", async () => {
    await writeFile(at("a.yaml"), service("a"));
    await writeFile(at("b.yaml"), `${service("b")}  broken: [`);
    void follow();
    await eventually(() => clock.sleeps.includes(60));
    expect(sink.synced.size).toBe(0);
    await writeFile(at("b.yaml"), service("b"));
    await sink.until((seen) => seen.isSynced);
    expect(sink.calls.slice(0, 2)).toEqual(["+Service shop/a", "+Service shop/b"]);
    expect(issues).toEqual([]);
  });
});

describe("a start", () => {
  /** Start on `directory`, and give what it failed with. */
  async function failure(): Promise<ProxyError> {
    const source = createFileSource({ path: directory, clock, log, report: (issue) => issues.push(issue), timings: QUICK });
    const error: unknown = await source.run(sink, stop.signal).catch((thrown: unknown) => thrown);
    if (!ProxyError.is(error)) throw new Error(`no operating error: ${String(error)}`);
    return error;
  }

  it.each([
    ["YAML that can't be parsed", `${service("b")}  broken: [`, 7, "can't be parsed"],
    ["something else altogether", "not a manifest", 1, "is not an object"],
    ["a List item that is no object", `${service("b")}---\n{apiVersion: v1, kind: List, items: [7]}`, 8, "items[0]: is not an object"],
    ["an object that isn't said which", `apiVersion: v1\nkind: Service\n`, 1, "Service has no metadata.name"],
    ["an unclear object behind one nobody can use", `{kind: Service}\n---\n${service("b").replace("name: b,", "")}`, 3, "no metadata.name"],
    ["JSON that was cut off", JSON.stringify({ apiVersion: "v1", kind: "List", items: [] }).slice(0, -4), 1, "can't be parsed"],
  ])("on %s is an error that names file and line; nothing counts as read", async (_what, text, line, what) => {
    await writeFile(at("a.yaml"), service("a"));
    await writeFile(at("b.yaml"), text);
    const error = await failure();
    expect(error).toMatchObject({ code: "invalid_object", object: `${at("b.yaml")}:${line}` });
    expect(error.what).toContain(what);
    expect(error.hint).toBe("correct it and start again; nothing was changed");
    expect(sink.synced.size).toBe(0);
    // One line, and that is the error.
    expect([issues, log.of("warn")]).toEqual([[], []]);
  });

  it("on a file that can't be opened is an error; nothing counts as read", async () => {
    await writeFile(at("a.yaml"), service("a"));
    const scan = await scanPath(directory);
    const reader = new FileReader({ root: directory, sink, log, report: (issue) => issues.push(issue) });
    await symlink(at("loop.yaml"), at("loop.yaml"));
    const files = new Map([...scan.files, [at("loop.yaml"), "1"]]);
    await expect(reader.read({ ...scan, files }, { acceptsSuspects: false, isFirst: true })).rejects.toMatchObject({
      code: "invalid_object",
      object: at("loop.yaml"),
    });
    expect(issues).toEqual([]);
  });

  it("on an object nobody can use reports that one, and reads all others", async () => {
    await writeFile(at("a.yaml"), `${service("a")}---\nkind: Service\nmetadata: { name: b }\n`);
    await writeFile(at("kustomization.yaml"), "resources: [a.yaml]\n");
    await follow();
    expect([...sink.objects.keys()]).toEqual(["Service shop/a"]);
    expect(issues.map(({ what }) => what)).toEqual(["Service has no apiVersion", "has no kind"]);
  });

  it.each(["b.yaml", "more"])("on a symlink that leads nowhere is an error, also where it may be a directory: %s", async (name) => {
    await writeFile(at("a.yaml"), service("a"));
    await symlink(at("gone"), at(name));
    expect(await failure()).toMatchObject({ code: "not_found", object: at(name), what: "the symlink leads nowhere" });
    expect(sink.synced.size).toBe(0);
    expect(issues).toEqual([]);
  });
});

describe("a change", () => {
  it("hands on the changed object alone", async () => {
    await writeFile(at("a.yaml"), [service("a"), service("b"), service("c")].join("---\n"));
    await follow();
    sink.drain();
    await change(() => writeFile(at("a.yaml"), [`# moved\n${service("a")}`, service("b", 81), service("c")].join("---\n")));
    expect(sink.drain()).toEqual(["+Service shop/b"]);
  });

  it("by an atomic rename is seen, in a single file too", async () => {
    await writeFile(at("a.yaml"), service("a"));
    await follow(at("a.yaml"));
    await writeFile(at(".a.yaml.tmp"), service("b"));
    await rename(at(".a.yaml.tmp"), at("a.yaml"));
    await expectObjects("Service shop/b");
    expect(issues).toEqual([]);
  });

  it("that leaves a symlink leading nowhere takes nothing away, until the link is gone too", async () => {
    await mkdir(at("..real", "deep"), { recursive: true });
    await writeFile(at("..real", "a.yaml"), service("a"));
    await writeFile(at("..real", "deep", "b.yaml"), service("b"));
    await symlink("..real/a.yaml", at("a.yaml"));
    await symlink("..real/deep", at("deep"));
    await follow();
    await change(() => rename(at("..real"), at("..away")));
    expect([...sink.objects.keys()].sort()).toEqual(["Service shop/a", "Service shop/b"]);
    expect(issues.map(({ object, what }) => `${object}: ${what}`).sort()).toEqual([
      `${at("a.yaml")}: the symlink leads nowhere`,
      `${at("deep")}: the symlink leads nowhere`,
    ]);
    await change(() => unlink(at("deep")));
    await expectObjects("Service shop/a");
    await change(() => rename(at("..away"), at("..real")));
    expect(log.of("info")).toContain("info the file can be read again");
    await expectObjects("Service shop/a");
  });

  it("by kubelet's swap of a ConfigMap's ..data is seen", async () => {
    await mkdir(at("..v1"));
    await mkdir(at("..v2"));
    await writeFile(at("..v1", "a.yaml"), service("a"));
    await writeFile(at("..v2", "a.yaml"), service("b"));
    await symlink("..v1", at("..data"));
    await symlink("..data/a.yaml", at("a.yaml"));
    await follow();
    expect([...sink.objects.keys()]).toEqual(["Service shop/a"]);
    await symlink("..v2", at("..data_tmp"));
    await rename(at("..data_tmp"), at("..data"));
    await rm(at("..v1"), { recursive: true });
    await expectObjects("Service shop/b");
  });

  it("in a directory that was made later is seen", async () => {
    await follow();
    await change(() => mkdir(at("later")));
    await writeFile(at("later", "a.yaml"), service("a"));
    await expectObjects("Service shop/a");
    expect(issues).toEqual([]);
  });

  it("is found by polling where watching fails to tell", async () => {
    // What a directory symlink points at is swapped from outside: no watched directory has an event.
    const elsewhere = await testDirectory();
    await mkdir(join(elsewhere, "1"));
    await writeFile(join(elsewhere, "1", "a.yaml"), service("a"));
    await mkdir(join(elsewhere, "2"));
    await writeFile(join(elsewhere, "2", "a.yaml"), service("b"));
    await symlink(join(elsewhere, "1"), join(elsewhere, "now"));
    await symlink(join(elsewhere, "now"), at("linked"));
    await follow(directory, { pollMs: 50 });
    await symlink(join(elsewhere, "2"), join(elsewhere, "next"));
    await rename(join(elsewhere, "next"), join(elsewhere, "now"));
    await expectObjects("Service shop/b");
    expect(issues).toEqual([]);
    stop.abort();
  });

  it("that removes an object, or its file, removes it", async () => {
    await writeFile(at("a.yaml"), `${service("a")}---\n${service("b")}`);
    await writeFile(at("c.yaml"), service("c"));
    await follow();
    await writeFile(at("a.yaml"), service("a"));
    await expectObjects("Service shop/a", "Service shop/c");
    await unlink(at("c.yaml"));
    await expectObjects("Service shop/a");
    await writeFile(at("a.yaml"), "{ apiVersion: v1, kind: List, items: [] }");
    await expectObjects();
    expect(sink.isSynced).toBe(true);
    expect(issues).toEqual([]);
  });
});

describe("a file in the making", () => {
  it("that is deleted and written anew, or emptied first, takes nothing away in between", async () => {
    await writeFile(at("a.yaml"), service("a"));
    await follow(at("a.yaml"), { graceMs: 2_000 });
    sink.drain();
    const graces = (): number => clock.sleeps.filter((ms) => ms === 2_000).length;
    await change(async () => {
      await unlink(at("a.yaml"));
      await eventually(() => graces() === 1);
      await writeFile(at("a.yaml"), service("a"));
    });
    await change(async () => {
      await writeFile(at("a.yaml"), "");
      await eventually(() => graces() === 2);
      await writeFile(at("a.yaml"), service("a"));
    });
    expect(sink.drain()).toEqual([]);
  });

  it("that stays empty keeps what it said, with one report, until it says something again", async () => {
    await writeFile(at("a.yaml"), service("a"));
    await follow();
    sink.drain();
    await change(() => writeFile(at("a.yaml"), ""));
    await change(() => writeFile(at("a.yaml"), "# nothing yet\n"));
    expect(sink.drain()).toEqual([]);
    expect(issues).toMatchObject([{ object: at("a.yaml"), what: "the file is empty" }]);
    expect(issues[0]?.hint).toContain("delete the file or write an empty List");
    await writeFile(at("a.yaml"), service("b"));
    await expectObjects("Service shop/b");
    expect(log.of("info")).toContain("info the file can be read again");
  });

  it("by somebody slow, in place, is read when it is whole", async () => {
    await writeFile(at("a.yaml"), `${service("a")}---\n${service("b")}---\n${service("c")}`);
    await follow(directory, { graceMs: 1_000 });
    sink.drain();
    const graces = (): number => clock.sleeps.filter((ms) => ms === 1_000).length;
    await change(async () => {
      await writeFile(at("a.yaml"), `${service("a")}---\n`);
      await eventually(() => graces() === 1);
      await appendFile(at("a.yaml"), `${service("b")}---\n${service("c", 81)}`);
    });
    expect(sink.drain()).toEqual(["+Service shop/c"]);
  });

  it("that never comes to rest is read all the same", async () => {
    const reader = new FileReader({ root: directory, sink, log, report: (issue) => issues.push(issue) });
    const outcomes: boolean[] = [];
    for (let port = 1; port <= 10; port += 1) {
      await writeFile(at("a.yaml"), service("a", port));
      outcomes.push(await reader.read(await scanPath(directory), { acceptsSuspects: false, isFirst: false }));
    }
    // The first version, then eight that are waited for, and the tenth.
    expect(outcomes).toEqual([true, ...Array.from({ length: 8 }, () => false), true]);
    expect(sink.drain()).toEqual(["+Service shop/a", "+Service shop/a"]);
  });

  it("that can't be parsed keeps what it said, with one report of file and line", async () => {
    await writeFile(at("a.yaml"), `${service("a")}---\n${service("b")}`);
    await follow();
    sink.drain();
    await change(() => writeFile(at("a.yaml"), `${service("a", 81)}---\n${service("b")}  ports: [{ port: 80 }\nmore: 1\n`));
    // Half-broken: the good document counts, the bad one's object stays.
    expect(sink.drain()).toEqual(["+Service shop/a"]);
    expect(issues).toHaveLength(1);
    expect(issues[0]?.object).toMatch(/a\.yaml:1[0-9]$/);
    expect(issues[0]?.what).toContain("can't be parsed");
    expect(issues[0]?.hint).toBe("correct it; until then objects that the file gave before stay, and what else it says is applied");
    await change(() => appendFile(at("a.yaml"), "---\n# still broken\n"));
    expect(issues).toHaveLength(1);
    // It still holds, and then it doesn't.
    expect(sink.held).toEqual(issues);
    await change(() => writeFile(at("a.yaml"), service("a", 81)));
    await expectObjects("Service shop/a");
    expect(sink.held).toEqual([]);
    expect(sink.drain()).toEqual(["-Service shop/b"]);
  });

  it("is not reported when it is whole soon after", async () => {
    await writeFile(at("a.yaml"), service("a"));
    await follow(directory, { graceMs: 1_000 });
    await writeFile(at("a.yaml"), `${service("b")}  ports: [`);
    await eventually(() => clock.sleeps.includes(1_000));
    await writeFile(at("a.yaml"), service("b"));
    await expectObjects("Service shop/b");
    expect(issues).toEqual([]);
  });
});

describe("two files that give one object", () => {
  it("decide it by name, and the other comes into its own when the first goes", async () => {
    await writeFile(at("a.yaml"), service("cart", 1));
    await writeFile(at("b.yaml"), `${service("till")}---\n${service("cart", 2)}`);
    await follow();
    const port = (): unknown => JSON.stringify(sink.objects.get("Service shop/cart")?.spec).replace(/^.*"port":(\d+).*$/, "$1");
    expect(port()).toBe("1");
    expect(issues).toEqual([
      {
        object: `${at("b.yaml")}:7`,
        what: `Service of shop/cart is already given by ${at("a.yaml")}`,
        hint: "the first one counts; delete one of them",
      },
    ]);
    sink.drain();
    await unlink(at("a.yaml"));
    await sink.until(({ calls }) => calls.length > 0);
    expect(sink.drain()).toEqual(["+Service shop/cart"]);
    expect(port()).toBe("2");
  });

  it("are told of once, whatever happens to other files, and again when the object came back", async () => {
    await writeFile(at("a.yaml"), service("cart", 1));
    await writeFile(at("b.yaml"), service("cart", 2));
    await follow();
    await change(() => writeFile(at("c.yaml"), service("till")));
    await change(() => writeFile(at("b.yaml"), `${service("cart", 2)}---\n${service("desk")}`));
    expect(issues).toHaveLength(1);
    await change(() => writeFile(at("a.yaml"), service("shelf")));
    await expectObjects("Service shop/cart", "Service shop/desk", "Service shop/shelf", "Service shop/till");
    await change(() => writeFile(at("a.yaml"), service("cart", 1)));
    await expectObjects("Service shop/cart", "Service shop/desk", "Service shop/till");
    expect(issues).toHaveLength(2);
  });

  it("decide it by name also where the other is read first, and handed on before", async () => {
    const others = Array.from({ length: 1_500 }, (_, index) => service(`s${index}`).replaceAll("\n", "\n  ").trim());
    const list = [
      "apiVersion: v1",
      "kind: List",
      "items:",
      ...[service("cart", 2).replaceAll("\n", "\n  ").trim(), ...others].map((text) => `- ${text}`),
    ];
    await mkdir(at("a"));
    await writeFile(at("a", "z.yaml"), list.join("\n"));
    await writeFile(at("a.yaml"), service("cart", 1));
    await follow();
    expect(sink.calls.filter((call) => call.endsWith("/cart"))).toEqual(["+Service shop/cart", "+Service shop/cart"]);
    expect(sink.objects.get("Service shop/cart")).toMatchObject({ spec: { ports: [{ port: 1 }] } });
    expect(issues).toHaveLength(1);
  });
});

it("says so when its only file is deleted, for with it go all services, and nothing else however often it looks; and that it is back when it is", async () => {
  await writeFile(at("a.yaml"), service("a"));
  await follow(at("a.yaml"), { pollMs: 20 });
  await unlink(at("a.yaml"));
  await expectObjects();
  const sleeps = clock.sleeps.length;
  await eventually(() => clock.sleeps.length > sleeps + 3);
  expect([issues, log.of("warn")]).toEqual([[], ["warn the file is gone, and all it said with it"]]);
  await writeFile(at("a.yaml"), service("b"));
  await expectObjects("Service shop/b");
  expect(log.of("info")).toContain("info the source can be read again");
});

it("keeps what a file said when it is overwritten with something else altogether", async () => {
  await writeFile(at("a.yaml"), service("a"));
  await follow(at("a.yaml"));
  await writeFile(at("a.yaml"), "not a manifest");
  await eventually(() => issues.length > 0);
  expect(issues[0]).toMatchObject({ what: "is not an object" });
  await expectObjects("Service shop/a");
});

it("keeps what a directory said when the directory itself is gone, and says when it is back, once", async () => {
  await mkdir(at("conf"));
  await writeFile(at("conf", "a.yaml"), service("a"));
  await follow(at("conf"), { pollMs: 20 });
  const back = (): number => log.of("info").filter((line) => line === "info the source can be read again").length;
  sink.drain();
  await rename(at("conf"), at("moved"));
  await eventually(() => issues.length > 0);
  expect(issues[0]).toMatchObject({ object: at("conf"), hint: "what it said before stays in force" });
  expect([back(), sink.drain()]).toEqual([0, []]);
  await rename(at("moved"), at("conf"));
  await eventually(() => back() > 0);
  const sleeps = clock.sleeps.length;
  await eventually(() => clock.sleeps.length > sleeps + 3);
  expect([back(), issues.length]).toEqual([1, 1]);
  expect(health).toEqual(["files followed", "files away", "files followed"]);
});

it("says once which kinds it does not read", async () => {
  const config = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n";
  await writeFile(at("a.yaml"), [config, config, service("a")].join("---\n"));
  await writeFile(at("b.yaml"), config);
  await follow();
  expect(log.of("info").filter((line) => line.includes("Deployment"))).toHaveLength(1);
  expect(issues).toEqual([]);
});

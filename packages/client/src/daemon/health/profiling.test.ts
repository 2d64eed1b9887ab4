import { gunzipSync } from "node:zlib";
import { systemClock } from "@turnout/core/process";
import { Profile } from "pprof-format";
import { expect, test } from "vitest";
import { encodeCpuProfile, encodeHeapProfile } from "./pprof-encoding.ts";
import { Profiling } from "./profiling.ts";

const frame = (functionName: string, lineNumber: number) => ({
  functionName,
  lineNumber,
  url: "file:///a.js",
  scriptId: "1",
  columnNumber: 0,
});

/** Each sample as `leaf < caller: values`. */
function stacksOf(body: Uint8Array | string): readonly string[] {
  const { sample, location, function: functions, stringTable } = Profile.decode(gunzipSync(body));
  const text = (index: number | bigint): string => stringTable.strings[Number(index)] ?? "";
  const nameOf = (id: number | bigint): string => {
    const line = location.find((one) => Number(one.id) === Number(id))?.line[0];
    const found = functions.find((one) => Number(one.id) === Number(line?.functionId));
    return `${text(found?.name ?? 0)}:${String(line?.line)}`;
  };
  return sample.map(({ locationId, value }) => `${locationId.map(nameOf).join(" < ")}: ${value.join(" ")}`);
}

test("a CPU profile: stacks leaf first, time until the next sample, nothing idle", () => {
  const nodes = [
    { id: 1, callFrame: frame("(root)", -1), children: [2, 4] },
    { id: 2, callFrame: frame("outer", 9), children: [3] },
    { id: 3, callFrame: frame("", 11) },
    { id: 4, callFrame: frame("(idle)", -1) },
  ];
  const profile = { nodes, samples: [3, 3, 4, 2], timeDeltas: [0, 100, 200, 50], startTime: 0, endTime: 1000 };
  expect(stacksOf(encodeCpuProfile(profile, 5))).toEqual(["(anonymous):12 < outer:10: 2 300000", "outer:10: 1 0"]);
});

test("a heap profile: bytes in use by place", () => {
  const child = { id: 2, callFrame: frame("fill", 4), selfSize: 4096, children: [] };
  const head = { id: 1, callFrame: frame("(root)", -1), selfSize: 0, children: [child] };
  expect(stacksOf(encodeHeapProfile({ head }, 512, 5))).toEqual(["fill:5: 1 4096"]);
});

const ask = (profiling: Profiling, path: string, query = "") =>
  profiling.routes()[path]?.({ method: "GET", accept: "", host: "", remoteAddress: "", query: new URLSearchParams(query) });

test("V8's profiles of this process are pprof's; one at a time, and they end when the process does", async () => {
  const stop = new AbortController();
  const profiling = new Profiling(systemClock(), stop.signal);
  const cpu = ask(profiling, "/debug/pprof/profile", "seconds=300");
  expect(await ask(profiling, "/debug/pprof/heap")).toMatchObject({ status: 409 });
  stop.abort();
  const reply = await cpu;
  expect(reply?.headers["Content-Disposition"]).toBe('attachment; filename="profile"');
  expect(Profile.decode(gunzipSync(reply?.body ?? "")).sampleType).toHaveLength(2);
  expect(Profile.decode(gunzipSync((await ask(profiling, "/debug/pprof/heap"))?.body ?? "")).sampleType).toHaveLength(2);
});

test.each(["0", "301", "x", "-1", "1.5", ""])("seconds=%s is refused", async (seconds) => {
  const profiling = new Profiling(systemClock(), AbortSignal.abort());
  expect(await ask(profiling, "/debug/pprof/profile", `seconds=${seconds}`)).toMatchObject({ status: 400 });
});

test("what only Go has is said to be missing, with the reason", async () => {
  const profiling = new Profiling(systemClock(), AbortSignal.abort());
  expect(await ask(profiling, "/debug/pprof/goroutine")).toMatchObject({
    status: 404,
    body: expect.stringContaining("no goroutines") as string,
  });
  expect((await ask(profiling, "/debug/pprof/"))?.body).toContain("mutex: not here");
});

import { gzipSync } from "node:zlib";
import type { Profiler, HeapProfiler } from "node:inspector";
import { Function as ProfileFunction, Line, Location, Profile, Sample, StringTable, ValueType } from "pprof-format";

/** What a frame of V8's stands for. */
interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

/** Collects stacks and writes them as pprof has them: leaf first, functions and places named once. */
class ProfileBuilder {
  readonly #strings = new StringTable();
  readonly #places = new Map<string, number>();
  readonly #locations: Location[] = [];
  readonly #functions: ProfileFunction[] = [];
  readonly #samples: Sample[] = [];
  readonly #types: ValueType[];

  /** @param types pairs of what is counted and its unit, e.g. `cpu`, `nanoseconds` */
  constructor(types: readonly (readonly [type: string, unit: string])[]) {
    this.#types = types.map(([type, unit]) => this.#typeOf(type, unit));
  }

  /** @param stack leaf first */
  add(stack: readonly Frame[], values: readonly number[]): void {
    this.#samples.push(new Sample({ locationId: stack.map((frame) => this.#place(frame)), value: [...values] }));
  }

  /** @param period what one sample stands for, in the unit of the last type */
  finish(period: number, durationMs: number, atMs: number): Uint8Array {
    const [periodType] = this.#types.slice(-1);
    const profile = new Profile({
      sampleType: this.#types,
      sample: this.#samples,
      location: this.#locations,
      function: this.#functions,
      stringTable: this.#strings,
      timeNanos: BigInt(Math.round(atMs)) * 1_000_000n,
      durationNanos: BigInt(Math.round(durationMs)) * 1_000_000n,
      ...(periodType === undefined ? {} : { periodType }),
      period,
    });
    return gzipSync(profile.encode());
  }

  #typeOf(type: string, unit: string): ValueType {
    return new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) });
  }

  #place({ functionName, url, lineNumber }: Frame): number {
    const key = `${functionName} ${url}:${lineNumber}`;
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const id = this.#places.size + 1;
    this.#places.set(key, id);
    const name = this.#strings.dedup(functionName === "" ? "(anonymous)" : functionName);
    // V8 counts lines from 0, pprof from 1.
    const line = lineNumber + 1;
    this.#functions.push(new ProfileFunction({ id, name, systemName: name, filename: this.#strings.dedup(url), startLine: line }));
    this.#locations.push(new Location({ id, line: [new Line({ functionId: id, line })] }));
    return id;
  }
}

/**
 * Write V8's CPU profile in pprof's format, gzipped. Pure.
 *
 * Shape: samples and CPU nanoseconds for each stack; idle time is left out, as Go's profile has none.
 * @source github.com/google/pprof/proto/profile.proto
 */
export function encodeCpuProfile({ nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile, atMs: number): Uint8Array {
  const byId = new Map(nodes.map((node) => [node.id, node] as const));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const reported = new Map<number, { count: number; us: number }>();
  samples.forEach((id, index) => {
    const sum = reported.get(id) ?? { count: 0, us: 0 };
    sum.count += 1;
    // A sample stands until the next one.
    sum.us += timeDeltas[index + 1] ?? 0;
    reported.set(id, sum);
  });
  const builder = new ProfileBuilder([
    ["samples", "count"],
    ["cpu", "nanoseconds"],
  ]);
  for (const [leaf, { count, us }] of reported) {
    const stack: Frame[] = [];
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const frame = byId.get(id)?.callFrame;
      if (frame !== undefined && frame.functionName !== "(root)") stack.push(frame);
    }
    if (stack[0]?.functionName === "(idle)") continue;
    builder.add(stack, [count, Math.max(0, us) * 1000]);
  }
  const durationMs = (endTime - startTime) / 1000;
  const periodNs = samples.length === 0 ? 0 : Math.round((durationMs * 1e6) / samples.length);
  return builder.finish(periodNs, durationMs, atMs);
}

/** Write V8's sampled heap in pprof's format, gzipped: objects and bytes in use, by where they were allocated. Pure. */
export function encodeHeapProfile({ head }: HeapProfiler.SamplingHeapProfile, intervalBytes: number, atMs: number): Uint8Array {
  const builder = new ProfileBuilder([
    ["inuse_objects", "count"],
    ["inuse_space", "bytes"],
  ]);
  const walk = (node: HeapProfiler.SamplingHeapProfileNode, above: readonly Frame[]): void => {
    const stack = node.callFrame.functionName === "(root)" ? above : [node.callFrame, ...above];
    // The protocol tells the bytes of each node, not of how many objects they are; what is sampled counts as one.
    if (node.selfSize > 0) builder.add(stack, [1, node.selfSize]);
    for (const child of node.children) walk(child, stack);
  };
  walk(head, []);
  return builder.finish(intervalBytes, 0, atMs);
}

import { Session } from "node:inspector/promises";
import { type Clock, ProxyError, wallMs } from "@turnout/core";
import type { AnyReply, HttpRequest, Reply } from "./health.ts";

const DEFAULT_SECONDS = 30;
const SECONDS_MAX = 300;
/** A heap is sampled from the moment it is asked for: Node keeps no record before that. */
const HEAP_DEFAULT_SECONDS = 10;
/** V8's own default, in bytes between two samples. */
const HEAP_INTERVAL_BYTES = 32_768;
const TEXT: Readonly<Record<string, string>> = { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff" };

/** Kinds of profiles that only Go has, and why. */
const GO_ONLY: Readonly<Record<string, string>> = {
  allocs: "V8 keeps no record of past allocations: see heap",
  block: "JavaScript has one thread, which does not wait for locks",
  cmdline: "see /proc/PID/cmdline",
  goroutine: "Node has no goroutines: see profile",
  mutex: "JavaScript has one thread, which does not wait for locks",
  symbol: "profiles hold the names of functions",
  threadcreate: "Node does not tell where threads came from",
  trace: "Node has no trace in Go's format: see profile",
};

/**
 * Answers `/debug/pprof/…`: CPU and heap of this process in pprof's format, so that `go tool pprof` reads them.
 *
 * Edges: one profile at a time, another one meanwhile is 409; a profile ends early when `signal` aborts. Seconds are 1 to 300.
 */
export class Profiling {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #isBusy = false;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
  }

  /** The paths and what answers them. */
  routes(): Readonly<Record<string, (request: HttpRequest) => AnyReply | Promise<AnyReply>>> {
    const missing = Object.entries(GO_ONLY).map(
      ([name, why]) =>
        [`/debug/pprof/${name}`, (): Reply => ({ status: 404, headers: TEXT, body: `no profile ${name} here: ${why}\n` })] as const,
    );
    return {
      "/debug/pprof": () => ({ status: 301, headers: { Location: "/debug/pprof/" }, body: "" }),
      "/debug/pprof/": () => ({ status: 200, headers: { ...TEXT, "Content-Type": "text/html; charset=utf-8" }, body: indexPage() }),
      "/debug/pprof/profile": (request) => this.#take("profile", request, DEFAULT_SECONDS, (seconds) => this.#cpu(seconds)),
      "/debug/pprof/heap": (request) => this.#take("heap", request, HEAP_DEFAULT_SECONDS, (seconds) => this.#heap(seconds)),
      ...Object.fromEntries(missing),
    };
  }

  async #take(name: string, { query }: HttpRequest, fallback: number, take: (seconds: number) => Promise<Uint8Array>): Promise<AnyReply> {
    const text = query.get("seconds") ?? String(fallback);
    const seconds = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(seconds >= 1 && seconds <= SECONDS_MAX))
      return { status: 400, headers: TEXT, body: `seconds must be 1 to ${SECONDS_MAX}, not ${JSON.stringify(text)}\n` };
    if (this.#isBusy) return { status: 409, headers: TEXT, body: "another profile is being taken: try again when it is done\n" };
    this.#isBusy = true;
    try {
      const headers = { "Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="${name}"` };
      return { status: 200, headers: { ...headers, "X-Content-Type-Options": "nosniff" }, body: await take(seconds) };
    } finally {
      this.#isBusy = false;
    }
  }

  async #cpu(seconds: number): Promise<Uint8Array> {
    return await withSession(async (session) => {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await this.#clock.sleep(seconds * 1000, this.#signal);
      const { profile } = await session.post("Profiler.stop");
      const { encodeCpuProfile } = await import("./pprof-encoding.ts");
      return encodeCpuProfile(profile, wallMs(this.#clock));
    });
  }

  async #heap(seconds: number): Promise<Uint8Array> {
    return await withSession(async (session) => {
      await session.post("HeapProfiler.enable");
      await session.post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL_BYTES });
      await this.#clock.sleep(seconds * 1000, this.#signal);
      const { profile } = await session.post("HeapProfiler.stopSampling");
      const { encodeHeapProfile } = await import("./pprof-encoding.ts");
      return encodeHeapProfile(profile, HEAP_INTERVAL_BYTES, wallMs(this.#clock));
    });
  }
}

async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const session = new Session();
  try {
    session.connect();
    return await use(session);
  } catch (error) {
    throw ProxyError.from(error, "tool_failed", "V8 took no profile");
  } finally {
    session.disconnect();
  }
}

function indexPage(): string {
  const rows = [
    ["profile?seconds=30", "CPU profile. You can specify the duration in the seconds GET parameter."],
    ["heap?seconds=10", "Memory that was allocated in so many seconds and is still in use, by where it was allocated."],
  ].map(([path = "", what = ""]) => `<li><a href="${path}">${path.split("?")[0] ?? ""}</a>: ${what}</li>`);
  const missing = Object.entries(GO_ONLY).map(([name, why]) => `<li>${name}: not here, ${why}</li>`);
  return `<html>
<head><title>/debug/pprof/</title></head>
<body>
/debug/pprof/
<p>Types of profiles available, for <code>go tool pprof</code>:</p>
<ul>
${[...rows, ...missing].join("\n")}
</ul>
</body>
</html>
`;
}

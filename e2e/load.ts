import { expect } from "vitest";
import type { HoldStatus, Tally, Transport } from "@turnout/lab";
import { inWords } from "./reach.ts";
import type { TestService, Way } from "./services.ts";
import type { Site } from "./site.ts";

/** A source of continuous load. */
export interface LoadSource {
  readonly from: string;
  readonly way: Way;
  readonly service: TestService;
  /** Default TCP: a new connection each time. */
  readonly transport?: Transport;
}

/** Load that runs, and connections that are kept. */
export interface RunningLoad {
  /** Wait until every source has made this many more attempts. */
  more(attempts: number): Promise<void>;
  /** End it; who was seen by whom, failures included, per source. */
  stop(): Promise<{ readonly tallies: readonly Tally[]; readonly words: readonly string[]; readonly held: readonly HoldStatus["state"][] }>;
}

/** Start load from every source, and keep `kept` TCP connections open from each that is not HTTP. */
export async function startLoad(site: Site, sources: readonly LoadSource[], kept: number = 1): Promise<RunningLoad> {
  // However many are kept, they ask as often together, but for each once in two seconds.
  const everyMs = Math.min(25 * kept, 2_000);
  const running = await Promise.all(
    sources.map(async ({ from, way, service, transport = "TCP" }, index) => {
      const agent = site.place(from).agent();
      const target = service.target(way, index % 2 === 0 ? "IPv4" : "IPv6");
      // Kept-alive connections choose an endpoint once: so many that no endpoint is left out by chance.
      const rate = transport === "HTTP" ? { concurrency: 32, pauseMs: 60 } : { concurrency: 2, pauseMs: 4 };
      const load = await agent.startLoad({ ...target, transport, ...rate });
      const count = transport === "TCP" ? kept : 0;
      const held = await Promise.all(Array.from({ length: count }, () => agent.hold({ ...target, everyMs, timeoutMs: 10_000 })));
      return { agent, load, held };
    }),
  );
  const attempts = (): Promise<number[]> => Promise.all(running.map(async ({ agent, load }) => (await agent.peekLoad(load)).attempts));
  return {
    more: async (count) => {
      const before = await attempts();
      await expect.poll(async () => (await attempts()).every((now, index) => now >= (before[index] ?? 0) + count)).toBe(true);
    },
    stop: async () => {
      const tallies = await Promise.all(running.map(({ agent, load }) => agent.stopLoad(load)));
      const held = await Promise.all(running.flatMap(({ agent, held: some }) => some.map((one) => agent.release(one))));
      return { tallies, words: tallies.map((tally) => inWords(site, tally)), held: held.map(({ state }) => state) };
    },
  };
}

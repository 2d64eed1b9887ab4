import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parseModule } from "../contract/check-module.ts";
import type { KernelObject } from "../contract/backend.ts";
import { openDataplane, probeModule, withWorldOf } from "../contract/host-module.ts";
import { cleanUpBackend } from "./clean-up.ts";
import type { World } from "../contract/world.ts";
import { createFeed } from "../state/node-view.ts";
import { TestClock } from "../testing/clock.ts";
import { rawNode, rawService, rawSlice } from "../testing/objects.ts";
import { RecordingLog } from "../testing/recording-log.ts";
import { RecordingObserver } from "../test-support/records.ts";
import { createStoreView, POD_SETTINGS } from "../testing/view.ts";
import { SyncLoop } from "./sync-loop.ts";

/** A backend as it was built against the first published contract 2, with what is required alone. Nobody builds it again: what it does has to work. */
const FILE = new URL("../../test/contract-2-backend.mjs", import.meta.url);
/** What was published, with another that has every member; contract-2-whole.test.ts runs that one. */
const PUBLISHED = {
  "contract-2-backend.mjs": "647d1bac501aa97c9a263636344a4ab636e338997604350f7689ed55f18251c8",
  "contract-2-whole-backend.mjs": "2ae3f719f463779362188079f3e5a077f30c98209f9c4f2f524582c55d3d3e16",
};
const VIEW = { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS } as const;
const NEVER = new AbortController().signal;

function world(): World {
  const outOfBounds = (): never => {
    throw new Error("this backend runs no programs");
  };
  return { exec: { run: outOfBounds, open: outOfBounds }, clock: new TestClock(), log: new RecordingLog() };
}

test.each(Object.entries(PUBLISHED))("%s is as it was published", async (name, sha256) => {
  const text = await readFile(new URL(name, FILE));
  expect(createHash("sha256").update(text).digest("hex")).toBe(sha256);
});

test("a backend built against the first contract 2 loads, syncs, fails closed on what it doesn't name, and is cleaned up", async () => {
  const loaded = (await import(FILE.href)) as { readonly default: unknown; readonly held: ReadonlyMap<string, KernelObject> };
  const held = (): readonly string[] => [...loaded.held].map(([id, { value }]) => `${id} = ${JSON.stringify(value)}`).toSorted();
  const module = parseModule(loaded.default, "backend contract-2-backend.mjs");
  const ports = [
    { name: "http", port: 80, protocol: "TCP" },
    { name: "dns", port: 53, protocol: "UDP" },
  ];
  const slice = (ip: string): ReturnType<typeof rawSlice> => rawSlice("cart", [{ ip }], { ports });
  const { store } = createStoreView([rawNode("node1"), rawService("cart", { clusterIP: "10.96.0.10", ports }), slice("10.1.1.5")]);
  const issues: string[] = [];
  await withWorldOf(module, world(), async (own) => {
    const { facts, problems, capabilities } = await probeModule(module, module.parseOptions({}), own, NEVER);
    expect(problems).toEqual([]);
    const dataplane = await openDataplane(module, module.parseOptions({}), own, NEVER);
    const backend = dataplane.family("IPv4");
    const { clock, log } = own;
    const timing = { minIntervalMs: 0, maxIntervalMs: 3_600_000, retryMs: 1_000 };
    const report = ({ what }: { readonly what: string }): void => void issues.push(what);
    const common = { family: "IPv4", host: facts, clock, log, observer: new RecordingObserver(), capabilities, report, ...timing } as const;
    const loop = new SyncLoop({ backend, feed: createFeed(store, VIEW), ...common });
    await loop.once(NEVER);
    expect(held()).toEqual(['node node1 = "facts"', 'port 10.96.0.10:80 = ["10.1.1.5"]']);
    expect(issues).toEqual(["left out, no UDP: the backend does not say that it can"]);
    store.upsert("EndpointSlice", slice("10.1.2.6"));
    await loop.once(NEVER);
    expect(held()).toEqual(['node node1 = "facts"', 'port 10.96.0.10:80 = ["10.1.2.6"]']);
    await cleanUpBackend(backend, clock, NEVER);
    expect(held()).toEqual([]);
    await dataplane.close(NEVER);
  });
});

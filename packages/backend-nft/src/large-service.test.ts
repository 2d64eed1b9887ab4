import type { Exec } from "@turnout/core";
import { rawNode, rawService, rawSlice, stateOfObjects, TestProxy } from "@turnout/core/testing";
import type { WantedState } from "@turnout/core/testing";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nftModule } from "./module.ts";
import type { NftObject } from "./objects.ts";
import type { NftFacts } from "./options.ts";
import type { Transaction } from "./plan.ts";
import { FACTS } from "./test-support/states.ts";

const { signal } = new AbortController();
/** A fiftieth of the Service that this is about, which takes a minute or two. */
const [PORTS, ENDPOINTS] = [40, 500];

/** A tenant's Service of many ports and endpoints, and another's, whose endpoint is given. */
function state(other: string, ports = PORTS): WantedState {
  const numbers = Array.from({ length: ports }, (_, index) => index + 1);
  const addresses = Array.from({ length: ENDPOINTS }, (_, index) => ({ ip: `10.1.${1 + (index >> 8)}.${index & 255}` }));
  const named = (offset: number): readonly object[] => numbers.map((port) => ({ name: `p${port}`, port: offset + port }));
  const large = [rawService("large", { ports: named(0) }), rawSlice("large", addresses, { ports: named(8_000) })];
  const objects = [rawNode("node1"), rawService("other", { clusterIP: "10.96.0.2" }), rawSlice("other", [{ ip: other, node: "node2" }])];
  return stateOfObjects([...objects, ...(ports === 0 ? [] : large)], {});
}

describe("a Service of many ports with many endpoints each, on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  let namespace: TestNamespace;
  const ran: string[] = [];
  beforeAll(() => {
    namespace = createTestNamespace("tlarge");
  });
  afterAll(() => namespace?.remove());

  it("is spread over maps, leaves another's change as cheap as ever, is adopted by a new process, and goes without a trace", async () => {
    const { exec, world } = namespace;
    const noted: Exec = { ...exec, run: (file, args, options) => (ran.push(args.join(" ")), exec.run(file, args, options)) };
    const dataplane = await nftModule.open(nftModule.parseOptions({}), { ...world, exec: noted }, signal);
    const backend = dataplane.family("IPv4");
    const open = (): TestProxy<NftFacts, NftObject, Transaction, WantedState> =>
      new TestProxy(backend, { host: FACTS, stateOf: (wanted) => wanted, nowMs: Date.now });
    const proxy = open();
    const observed = async (): Promise<readonly NftObject[]> => [...((await backend.observe(signal))?.objects.values() ?? [])];
    const isBusy = ({ value }: NftObject): boolean => value !== "tampered  0";

    await proxy.sync(state("10.2.0.1", 0));
    const before = (await observed()).filter(isBusy);
    await proxy.sync(state("10.2.0.1"));
    const sizes = new Map<string, number>();
    for (const object of await observed()) {
      if (object.kind !== "large-pool") continue;
      const [map = ""] = object.key.split(" ");
      sizes.set(map, (sizes.get(map) ?? 0) + object.value.length);
    }
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    expect(total).toBe(PORTS * ENDPOINTS);
    // What listing costs is the square of the largest.
    expect(Math.max(...sizes.values())).toBeLessThan(total / 5);

    ran.length = 0;
    expect(await proxy.sync(state("10.2.0.2"))).toBeLessThan(3);
    // Elements alone, which the kernel gets from us: no process, no listing.
    expect(ran).toEqual([]);

    const next = open();
    await next.adopt();
    expect(await next.sync(state("10.2.0.2"))).toBe(0);

    await next.sync(state("10.2.0.1", 0));
    const after = (await observed()).filter(isBusy);
    expect(new Map(after.map((object) => [`${object.kind} ${object.key}`, object]))).toEqual(
      new Map(before.map((object) => [`${object.kind} ${object.key}`, object])),
    );
    await dataplane.close(signal);
  }, 120_000);
});

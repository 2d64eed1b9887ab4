import type { Dataplane, IPFamily, World } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { OwnCommits } from "@turnout/host";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NftSession } from "@turnout/host/nft";
import { nftModule } from "./module.ts";
import type { NftObject } from "./objects.ts";
import type { NftFacts } from "./options.ts";
import type { Transaction } from "./plan.ts";
import { proxyOf } from "./test-support/states.ts";
import type { NftProxy } from "./test-support/states.ts";

const { signal } = new AbortController();

let namespace: TestNamespace;
let dataplane: Dataplane<NftFacts, NftObject, Transaction> | undefined;

/** Another process of the one dataplane. */
function open(family: IPFamily = "IPv4"): NftProxy {
  if (dataplane === undefined) throw new Error("the dataplane is opened before the tests");
  return proxyOf(dataplane.family(family), family);
}

const nft = (...args: readonly string[]): Promise<string> => namespace.run("nft", args);

/** What the kernel holds, in a form that doesn't depend on the order in which it came there; idle chains left out. */
async function kernelState({ backend }: NftProxy): Promise<readonly string[]> {
  const observed = await backend.observe(signal);
  const objects = [...(observed?.objects.values() ?? [])].filter((object) => object.value !== "tampered  0");
  return objects.map(({ kind, key, value }) => `${kind} ${key} ${JSON.stringify(value)}`).sort();
}

/** A process that has brought a state into force. */
async function synced(fixtures: readonly ServiceFixture[] = SHOWCASE, family: IPFamily = "IPv4"): Promise<NftProxy> {
  const proxy = open(family);
  await proxy.sync(fixtures);
  return proxy;
}

describe("the nft backend on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  beforeAll(async () => {
    namespace = createTestNamespace("tnft");
    dataplane = await nftModule.open(nftModule.parseOptions({}), namespace.world, signal);
  });
  afterAll(async () => {
    await dataplane?.close(signal);
    namespace?.remove();
  });
  beforeEach(() => nft("flush", "ruleset"));

  it.each(["IPv4", "IPv6"] as const)("adopts what another process left, and puts back just what somebody took: %s", async (family) => {
    const nftFamily = family === "IPv4" ? "ip" : "ip6";
    const before = await kernelState(await synced(SHOWCASE, family));
    expect(before.length).toBeGreaterThan(40);
    await nft("flush", "chain", nftFamily, "turnout", "pick-tcp");
    await nft("flush", "set", nftFamily, "turnout", "cluster-ips");
    const second = open(family);
    await second.adopt();
    expect(await second.sync(SHOWCASE)).toBe(1 + SHOWCASE.length);
    expect(await kernelState(second)).toEqual(before);
  });

  it("replaces a table of the layout before, with nat chains at other programs' priorities, in one transaction", async () => {
    await synced();
    const base = async (): Promise<readonly string[]> =>
      (await nft("list", "chains", "ip")).match(/type \w+ hook .*(?=;.*;)/g)?.toSorted() ?? [];
    const whole = await base();
    await nft("delete chain ip turnout mark-postrouting; delete chain ip turnout layout-5; add chain ip turnout layout-4");
    for (const [hook, priority] of [
      ["prerouting", -100],
      ["output", -100],
      ["postrouting", 100],
    ] as const)
      await nft(`delete chain ip turnout nat-${hook}; add chain ip turnout nat-${hook} { type nat hook ${hook} priority ${priority}; }`);
    const second = open();
    second.want(SHOWCASE);
    await second.adopt();
    expect(second.plan().steps).toHaveLength(1);
    await second.sync();
    expect(await base()).toEqual(whole);
    await second.adopt();
    expect(second.ledger.delta(0)).toMatchObject({ put: [], remove: [] });
  });

  it("gives up an nft that hangs, and goes on with another", async () => {
    const pids: (number | undefined)[] = [];
    const { world } = namespace;
    const noted = (...args: Parameters<World["exec"]["open"]>): ReturnType<World["exec"]["open"]> => {
      const started = world.exec.open(...args);
      pids.push(started.pid);
      return started;
    };
    const session = new NftSession({ ...world, exec: { ...world.exec, open: noted }, own: new OwnCommits(), table: "ip turnout" }, "nft");
    session.start();
    process.kill(pids[0] ?? 0, "SIGSTOP");
    await expect(session.commit([{ add: { table: { family: "ip", name: "hung" } } }], signal)).rejects.toMatchObject({ code: "timed_out" });
    await session.commit([{ add: { table: { family: "ip", name: "other" } } }], signal);
    expect(pids).toHaveLength(2);
    expect(await nft("list", "tables")).toBe("table ip other\n");
    session.close();
  }, 30_000);

  it("deletes chains that have idled", async () => {
    const proxy = await synced();
    await proxy.sync([]);
    const delta = proxy.ledger.delta(Date.now() + 5_000);
    expect(delta.lingering.length).toBeGreaterThan(10);
    // One that somebody else has deleted must not hold up the rest.
    await nft("delete", "chain", "ip", "turnout", "pick-tcp");
    expect(await proxy.backend.apply(proxy.backend.plan(delta), signal)).toEqual({});
    const observed = await proxy.backend.observe(signal);
    const chains = [...(observed?.objects.values() ?? [])].filter(({ kind }) => kind === "chain");
    expect(chains.length).toBe(proxy.ledger.wanted().size - 1 - 1);
  });

  it("cleans up its own table and no other", async () => {
    await nft("add", "table", "ip", "somebody");
    const { backend } = await synced();
    await backend.cleanup?.(signal);
    await backend.cleanup?.(signal);
    expect(await nft("list", "tables")).toBe("table ip somebody\n");
  });
});

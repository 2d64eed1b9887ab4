import { systemClock } from "@turnout/core/process";
import { Ledger } from "@turnout/core";
import type { Backend, Dataplane, IPFamily, Log, World } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { OwnCommits } from "@turnout/host";
import type { LinuxWorld } from "@turnout/host";
import { createFakeNetlink } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { elementText, NftSession, readListing } from "@turnout/host/nft";
import type { NftStatement } from "@turnout/host/nft-statement";
import { nftModule } from "./module.ts";
import { rememberedEndpoint } from "./observe.ts";
import type { NftObject } from "./objects.ts";
import type { NftFacts } from "./options.ts";
import type { Transaction } from "./plan.ts";
import { createTestNamespace } from "./test-support/namespace.ts";
import type { TestNamespace } from "./test-support/namespace.ts";
import { FACTS, stateOf } from "./test-support/states.ts";

const { signal } = new AbortController();

type NftBackend = Backend<NftFacts, NftObject, Transaction>;

const quiet: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
/** In the test's namespace. */
let world: LinuxWorld;

let dataplane: Dataplane<NftFacts, NftObject, Transaction> | undefined;

/** Another process of the one dataplane. */
function open(family: IPFamily): NftBackend {
  if (dataplane === undefined) throw new Error("the dataplane is opened before the tests");
  return dataplane.family(family);
}

/** A backend with its ledger: what a proxy process is to the kernel. */
class Proxy {
  readonly ledger: Ledger<NftObject> = new Ledger<NftObject>();
  readonly backend: NftBackend;
  readonly #family: IPFamily;

  constructor(backend: NftBackend, family: IPFamily) {
    this.backend = backend;
    this.#family = family;
  }

  want(fixtures: readonly ServiceFixture[]): void {
    const { rows, node } = stateOf(fixtures, this.#family);
    const context = { node, host: FACTS };
    this.ledger.setAll(this.backend.skeleton(context), new Map([...rows].map(([key, row]) => [key, this.backend.render(row, context)])));
  }

  /** Sync once; resolves to how many objects had to change. */
  async sync(): Promise<number> {
    const delta = this.ledger.delta(Date.now());
    if (delta.put.length + delta.remove.length === 0) return 0;
    this.ledger.commit(delta, await this.backend.apply(this.backend.plan(delta), signal));
    return delta.put.length + delta.remove.length;
  }

  async adopt(): Promise<void> {
    this.ledger.adopt(await this.backend.observe(signal));
  }
}

async function nft(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await world.exec.run("nft", args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** What the kernel holds, in a form that doesn't depend on the order in which it came there; idle chains left out. */
async function kernelState(backend: NftBackend): Promise<readonly string[]> {
  const observed = await backend.observe(signal);
  const objects = [...(observed?.objects.values() ?? [])].filter((object) => object.value !== "tampered  0");
  return objects.map(({ kind, key, value }) => `${kind} ${key} ${JSON.stringify(value)}`).sort();
}

const fixture: fc.Arbitrary<ServiceFixture> = fc
  .record({
    number: fc.integer({ min: 1, max: 6 }),
    protocol: fc.constantFrom("TCP", "UDP", "SCTP"),
    local: fc.integer({ min: 0, max: 3 }),
    remote: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 14, max: 40 })),
    hasAffinity: fc.boolean(),
    isLocal: fc.boolean(),
    isBalanced: fc.boolean(),
    isRanged: fc.boolean(),
  })
  .map(({ number, protocol, local, remote, hasAffinity, isLocal, isBalanced, isRanged }) => ({
    name: `svc-${number}`,
    number,
    protocol,
    local,
    remote,
    loadBalancerIPs: isBalanced ? [`198.51.100.${number}`, `fd00:198::${number}`] : [],
    spec: {
      type: isBalanced ? "LoadBalancer" : "ClusterIP",
      ...(isBalanced ? { nodePort: 30_000 + number, externalTrafficPolicy: isLocal ? "Local" : "Cluster" } : {}),
      ...(isRanged ? { loadBalancerSourceRanges: [`203.0.${number}.0/24`] } : {}),
      ...(hasAffinity ? { sessionAffinity: "ClientIP" } : {}),
    },
  }));

const state = fc.uniqueArray(fixture, { selector: ({ number }) => number, maxLength: 6 });

describe("the nft backend on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  let namespace: TestNamespace;
  let backends: Record<IPFamily, NftBackend>;
  beforeAll(async () => {
    namespace = createTestNamespace("tnft");
    world = { exec: namespace.exec, clock: systemClock(), netlink: { ...createFakeNetlink(), ...namespace.tables }, log: quiet };
    dataplane = await nftModule.open(nftModule.parseOptions({}), world, signal);
    backends = { IPv4: open("IPv4"), IPv6: open("IPv6") };
  });
  afterAll(async () => {
    await dataplane?.close(signal);
    namespace?.remove();
  });
  beforeEach(async () => {
    await nft("flush", "ruleset");
    await Promise.all(Object.values(backends).map((backend) => backend.observe(signal)));
  });

  describe.each(["IPv4", "IPv6"] as const)("%s", (family) => {
    it("takes the showcase, and a second sync is empty", async () => {
      const proxy = new Proxy(backends[family], family);
      proxy.want(SHOWCASE);
      expect(await proxy.sync()).toBeGreaterThan(40);
      await proxy.adopt();
      expect(proxy.ledger.delta(0)).toMatchObject({ put: [], remove: [] });
    });

    it("adopts what another process left, and puts back just what somebody took", async () => {
      const first = new Proxy(backends[family], family);
      first.want(SHOWCASE);
      await first.sync();
      const nftFamily = family === "IPv4" ? "ip" : "ip6";
      const before = await kernelState(backends[family]);
      await nft("flush", "chain", nftFamily, "turnout", "pick-tcp");
      await nft("flush", "set", nftFamily, "turnout", "cluster-ips");
      const second = new Proxy(open(family), family);
      second.want(SHOWCASE);
      await second.adopt();
      expect(await second.sync()).toBe(1 + SHOWCASE.length);
      expect(await kernelState(backends[family])).toEqual(before);
    });

    it("ends where a full sync ends, whatever the history", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(state, { minLength: 2, maxLength: 6 }), async (history) => {
          await nft("flush", "ruleset");
          const proxy = new Proxy(backends[family], family);
          for (const fixtures of history) {
            proxy.want(fixtures);
            await proxy.sync();
          }
          expect(proxy.ledger.defects.size).toBe(0);
          const incremental = await kernelState(backends[family]);
          await nft("flush", "ruleset");
          const fresh = new Proxy(backends[family], family);
          fresh.want(history.at(-1) ?? []);
          await fresh.sync();
          expect(incremental).toEqual(await kernelState(backends[family]));
        }),
        { numRuns: 15 },
      );
    });
  });

  it("forgets the clients of an endpoint that goes, at once or after a restart, and of no other", async () => {
    const withAffinity = (remote: number): ServiceFixture => ({ name: "sticky", number: 1, remote, spec: { sessionAffinity: "ClientIP" } });
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want([withAffinity(2)]);
    await proxy.sync();
    const endpoints = [...proxy.ledger.wanted().values()].filter(({ kind }) => kind === "affinity").map(({ key }) => key);
    expect(endpoints).toHaveLength(2);
    const clients = endpoints.flatMap((key) => ["203.0.113.1", "203.0.113.2"].map((client) => `${client} . ${key}`));
    const remember = (): Promise<string> =>
      nft(`add element ip turnout affinity { ${clients.map((key) => `${key} timeout 1h`).join(", ")} }`);
    const remembered = async (): Promise<readonly string[]> =>
      (readListing(await nft("-j", "list", "set", "ip", "turnout", "affinity")).sets.get("affinity") ?? []).map((element) =>
        rememberedEndpoint(elementText(element)),
      );
    await remember();
    proxy.want([withAffinity(1)]);
    await proxy.sync();
    const [kept = ""] = [...proxy.ledger.wanted().values()].filter(({ kind }) => kind === "affinity").map(({ key }) => key);
    expect(await remembered()).toEqual([kept, kept]);
    await remember();
    const successor = new Proxy(open("IPv4"), "IPv4");
    successor.want([withAffinity(1)]);
    await successor.adopt();
    // The endpoint's clients, and its chain, which idles.
    expect(await successor.sync()).toBe(2);
    expect(await remembered()).toEqual([kept, kept]);
  });

  it("notices a rule that was replaced by another", async () => {
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.sync();
    const before = await kernelState(backends.IPv4);
    const listed = await nft("-a", "list", "chain", "ip", "turnout", "dispatch");
    const [, handle = ""] = /@nodeports.*# handle (\d+)/.exec(listed) ?? [];
    await nft("replace", "rule", "ip", "turnout", "dispatch", "handle", handle, "accept");
    await proxy.adopt();
    expect(await proxy.sync()).toBe(1);
    expect(await nft("list", "chain", "ip", "turnout", "dispatch")).toContain("@nodeports");
    expect(await kernelState(backends.IPv4)).toEqual(before);
  });

  it("notices a base chain that drops what it doesn't decide, and one that the kernel no longer calls in", async () => {
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.sync();
    const before = await nft("list", "chains", "ip");
    await nft("add chain ip turnout filter-forward { policy drop; }");
    await proxy.adopt();
    expect(await proxy.sync()).toBe(1);
    expect(await nft("list", "chains", "ip")).toBe(before);
    await nft("delete chain ip turnout nat-output; add chain ip turnout nat-output");
    await proxy.adopt();
    expect(await proxy.sync()).toBeGreaterThan(1);
    expect((await nft("list", "chains", "ip")).split("\n").toSorted()).toEqual(before.split("\n").toSorted());
  });

  it("replaces a table of another layout", async () => {
    await nft("add table ip turnout; add chain ip turnout strange; add set ip turnout services { type mark; }");
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.adopt();
    await proxy.sync();
    await proxy.adopt();
    expect(proxy.ledger.delta(0)).toMatchObject({ put: [], remove: [] });
  });

  it("replaces a table of the layout before, with nat chains at other programs' priorities, in one transaction", async () => {
    const first = new Proxy(backends.IPv4, "IPv4");
    first.want(SHOWCASE);
    await first.sync();
    const base = async (): Promise<readonly string[]> =>
      (await nft("list", "chains", "ip")).match(/type \w+ hook .*(?=;.*;)/g)?.toSorted() ?? [];
    const whole = await base();
    await nft("delete chain ip turnout mark-postrouting; delete chain ip turnout layout-4; add chain ip turnout layout-3");
    for (const [hook, priority] of [
      ["prerouting", -100],
      ["output", -100],
      ["postrouting", 100],
    ] as const)
      await nft(`delete chain ip turnout nat-${hook}; add chain ip turnout nat-${hook} { type nat hook ${hook} priority ${priority}; }`);
    const second = new Proxy(open("IPv4"), "IPv4");
    second.want(SHOWCASE);
    await second.adopt();
    expect(second.backend.plan(second.ledger.delta(Date.now())).steps).toHaveLength(1);
    await second.sync();
    expect(await base()).toEqual(whole);
    await second.adopt();
    expect(second.ledger.delta(0)).toMatchObject({ put: [], remove: [] });
  });

  it("gives up an nft that hangs, and goes on with another", async () => {
    const pids: (number | undefined)[] = [];
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
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.sync();
    proxy.want([]);
    await proxy.sync();
    const delta = proxy.ledger.delta(Date.now() + 5_000);
    expect(delta.lingering.length).toBeGreaterThan(10);
    // One that somebody else has deleted must not hold up the rest.
    await nft("delete", "chain", "ip", "turnout", "pick-tcp");
    const outcome = await proxy.backend.apply(proxy.backend.plan(delta), signal);
    expect(outcome).toEqual({});
    const observed = await proxy.backend.observe(signal);
    const chains = [...(observed?.objects.values() ?? [])].filter(({ kind }) => kind === "chain");
    expect(chains.length).toBe(proxy.ledger.wanted().size - 1 - 1);
  });

  it("leaves everything as it was when a transaction fails", async () => {
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.sync();
    const before = await kernelState(backends.IPv4);
    const write = (verb: "delete", key: string): NftStatement => ({
      verb,
      family: "ip",
      table: "turnout",
      set: "cluster-ips",
      parts: ["address"],
      elements: [{ key, value: "", comment: "" }],
    });
    const bad = {
      statements: [write("delete", "10.96.0.1"), write("delete", "192.0.2.99")],
      forgets: [],
      emptied: [],
      deleted: [],
    };
    await expect(proxy.backend.apply({ steps: [bad] }, signal)).rejects.toMatchObject({ name: "ProxyError" });
    expect(await kernelState(backends.IPv4)).toEqual(before);
  });

  it("cleans up its own table and no other", async () => {
    await nft("add", "table", "ip", "somebody");
    const proxy = new Proxy(backends.IPv4, "IPv4");
    proxy.want(SHOWCASE);
    await proxy.sync();
    await proxy.backend.cleanup?.(signal);
    await proxy.backend.cleanup?.(signal);
    expect(await nft("list", "tables")).toBe("table ip somebody\n");
  });
});

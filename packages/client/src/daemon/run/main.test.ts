import { ProxyError, type BackendModule } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVICE, toyConfig, ToyProxy } from "../../test-support/toy-proxy.ts";
import {
  eventually,
  freePort,
  flushPromises,
  toyChange,
  toyEndpoint,
  toyFull,
  toyModule,
  toyNode,
  toyRow,
  withBackends,
} from "../../test-support/toys.ts";

let proxy: ToyProxy;

beforeEach(() => {
  proxy = new ToyProxy();
});

afterEach(() => proxy.end());

test("a module of another contract is refused before it is asked for anything", async () => {
  const former = { ...toyModule(proxy.kernel), contract: 1 } as unknown as BackendModule;
  await expect(proxy.start({}, former)).rejects.toThrow("[invalid_object] this is no backend module: contract 1, this is 2: backend toy");
});

describe("a running proxy", () => {
  test("brings both families in force, follows changes, and leaves everything in place when it ends", async () => {
    const done = proxy.start();
    proxy.pushBoth();
    await flushPromises();
    expect([...proxy.kernel.objects.IPv4.keys()]).toEqual(["table IPv4", SERVICE]);
    expect([...proxy.kernel.objects.IPv6.keys()]).toEqual(["table IPv6"]);
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await proxy.world.clock.advance(100);
    expect([...proxy.kernel.objects.IPv4.keys()]).toEqual(["table IPv4"]);
    proxy.stop.abort();
    await done;
    expect(proxy.kernel.objects.IPv4.size).toBe(1);
    expect(proxy.kernel.closed).toEqual(["IPv4", "IPv6"]);
  });

  test("uses some endpoints of a Service that has too many for the backend, or than it was told, and all of others", async () => {
    const [small, large] = [toyRow("cart"), { ...toyRow("hoard"), key: "shop/hoard:http/TCP" }];
    const endpoints = Array.from({ length: 5 }, (_, index) => toyEndpoint(`10.1.0.${index + 1}`));
    const destinations = large.destinations.map((one) => ({ ...one, address: "10.96.0.99" }));
    const row = { ...large, endpoints, cluster: [0, 1, 2, 3, 4], destinations };
    const used = (): readonly number[] =>
      [...proxy.kernel.objects.IPv4.values()].flatMap(({ kind, value }) =>
        kind === "service" ? (JSON.stringify(value).match(/10\.1\.0\./g)?.length ?? 0) : [],
      );
    void proxy.start({}, { ...toyModule(proxy.kernel), serviceEntriesMax: 4 });
    proxy.feeds.IPv4.push(toyFull([small, row]));
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    await flushPromises();
    expect(used()).toEqual([1, 4]);
    const reported = proxy.world.log.lines.filter((line) => line.startsWith("warn too many endpoints"));
    expect(reported).toEqual([expect.stringContaining("object=Service shop/hoard")]);
    await proxy.end();
    proxy = new ToyProxy();
    void proxy.start({ config: toyConfig({ serviceEntriesMax: 5 }) }, { ...toyModule(proxy.kernel), serviceEntriesMax: 4 });
    proxy.feeds.IPv4.push(toyFull([small, row]));
    await flushPromises();
    expect(used()).toEqual([1, 5]);
  });

  test("R-76 a namespace that wants more than its share keeps no other's Services out, and is reported", async () => {
    const capacity = { name: "rows", max: 2, hint: "use fewer", sizeOf: () => 1 };
    void proxy.start(
      {},
      withBackends(toyModule(proxy.kernel), () => ({ capacities: () => [capacity] })),
    );
    const rowOf = (namespace: string, name: string, address: string): ReturnType<typeof toyRow> => {
      const row = toyRow(name);
      const destinations = row.destinations.map((one) => ({ ...one, address }));
      return { ...row, key: `${namespace}/${name}:http/TCP`, name: { ...row.name, namespace }, destinations };
    };
    proxy.feeds.IPv4.push(toyFull(["a", "b", "c"].map((name, at) => rowOf("evil", name, `10.96.0.${at}`))));
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    await flushPromises();
    const inForce = (): readonly string[] => [...proxy.kernel.objects.IPv4.keys()].filter((id) => id.startsWith("service "));
    expect(inForce()).toEqual(["service 10.96.0.0:80", "service 10.96.0.1:80"]);
    proxy.feeds.IPv4.push(toyChange({ set: [rowOf("shop", "cart", "10.96.1.1")] }));
    await proxy.world.clock.advance(100);
    expect(inForce()).toEqual(["service 10.96.0.0:80", "service 10.96.1.1:80"]);
    const reported = proxy.world.log.lines.filter((line) => line.startsWith("warn its namespace has more than its share"));
    expect(reported).toEqual([expect.stringContaining("object=Service evil/c"), expect.stringContaining("object=Service evil/b")]);
  });

  test("Services are followed on when the node has another address, and when nobody knows it any more", async () => {
    const done = proxy.start();
    proxy.pushBoth();
    await flushPromises();
    proxy.feeds.IPv4.push(toyChange({ node: toyNode({ addresses: ["127.0.0.2"] }) }));
    await proxy.world.clock.advance(100);
    proxy.feeds.IPv4.push({ ...toyFull([toyRow("cart")], toyNode({ addresses: [] })), instance: "another node-state server" });
    await proxy.world.clock.advance(100);
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/cart:http/TCP"] }));
    await proxy.world.clock.advance(100);
    expect([...proxy.kernel.objects.IPv4.keys()]).toEqual(["table IPv4"]);
    proxy.stop.abort();
    await expect(done).resolves.toBeUndefined();
  });

  test("a row that one family is refused keeps nothing from the other in a one-time sync", async () => {
    const module = toyModule(proxy.kernel);
    const late = withBackends(module, (inner, family) => ({
      apply: async (plan, ending) => {
        if (family === "IPv4" && JSON.stringify(plan).includes("10.96.0.99")) throw new ProxyError("tool_failed", "refused");
        // The other family's sync takes longer.
        if (family === "IPv6") await flushPromises();
        if (ending.aborted) throw new ProxyError("canceled", "it was stopped");
        return await inner.apply(plan, ending);
      },
    }));
    const bad = toyRow("bad");
    const destinations = bad.destinations.map((one) => ({ ...one, address: "10.96.0.99" }));
    proxy.feeds.IPv4.push(toyFull([toyRow("cart"), { ...bad, destinations }]));
    proxy.feeds.IPv6.push(toyFull([toyRow("six", { family: "IPv6" })], toyNode({ family: "IPv6" })));
    await expect(proxy.start({ once: true }, late)).rejects.toThrow(/shop\/bad/);
    expect([[...proxy.kernel.objects.IPv4.keys()], [...proxy.kernel.objects.IPv6.keys()]]).toEqual([
      ["table IPv4", SERVICE],
      ["table IPv6", SERVICE],
    ]);
  });

  test("a failing sync is retried, and told by log, metric and health", async () => {
    const port = await freePort();
    void proxy.start({ config: toyConfig({ healthzBindAddress: { ip: "127.0.0.1", port } }) });
    const codes = async (): Promise<number[]> =>
      Promise.all(["healthz", "livez"].map(async (path) => (await fetch(`http://127.0.0.1:${port}/${path}`)).status));
    await eventually("the health server", () => proxy.world.log.lines.some((line) => line.startsWith("info serving healthz")));
    proxy.kernel.failures.push(...Array.from({ length: 200 }, () => new ProxyError("tool_failed", "toy refuses")));
    proxy.pushBoth();
    await flushPromises();
    expect(await codes()).toEqual([200, 200]);
    for (let second = 0; second < 60; second += 1) await proxy.world.clock.advance(1_000);
    expect(await codes()).toEqual([503, 503]);
    expect(await proxy.metrics.text()).toContain('turnout_sync_failures_total{ip_family="IPv4",code="tool_failed"}');
    proxy.kernel.failures.length = 0;
    for (let second = 0; second < 60; second += 1) await proxy.world.clock.advance(1_000);
    expect(await codes()).toEqual([200, 200]);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
  });

  test("health follows the node's eligibility, livez does not", async () => {
    const port = await freePort();
    void proxy.start({
      config: toyConfig({ healthzBindAddress: { ip: "127.0.0.1", port } }),
      eligibility: () => ({ isEligible: false, reason: "leaving" }),
    });
    await eventually("the health server", () => proxy.world.log.lines.some((line) => line.startsWith("info serving healthz")));
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(503);
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(404);
    expect(proxy.world.log.lines.filter((line) => line.includes("answers 503"))).toEqual(["warn /healthz answers 503 reason=leaving"]);
    expect(await proxy.metrics.text()).toContain('kubeproxy_proxy_healthz_total{code="503"} 1');
  });

  test("the metrics server has metrics, mode and configuration", async () => {
    const port = await freePort();
    void proxy.start({ config: toyConfig({ metricsBindAddress: { ip: "127.0.0.1", port } }) });
    await eventually("the metrics server", () => proxy.world.log.lines.some((line) => line.startsWith("info serving metrics")));
    const text = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    expect(await text("/healthz")).toBe("ok");
    expect(await text("/proxyMode")).toBe("toy");
    expect(JSON.parse(await text("/configz"))).toHaveProperty(["kubeproxy.config.k8s.io", "mode"], "");
    expect(await text("/metrics")).toContain("kubeproxy_sync_proxy_rules_duration_seconds");
  });

  test("new host facts render everything again", async () => {
    await proxy.started();
    proxy.kernel.emit({ kind: "facts", facts: "new facts" });
    await proxy.world.clock.advance(101);
    expect([...proxy.kernel.objects.IPv4.values(), ...proxy.kernel.objects.IPv6.values()].map(({ value }) => value)).toContain("new facts");
  });

  test("facts that changed between the probe and the watch come into force, and facts that are known change nothing", async () => {
    const reported: ("first facts" | "new facts")[] = ["new facts", "new facts"];
    const module = withBackends(toyModule(proxy.kernel), () => ({
      watch: async function* (signal) {
        const facts = reported.shift() ?? "first facts";
        yield { kind: "facts", facts };
        yield { kind: "facts", facts };
        yield* proxy.kernel.events(signal);
      },
    }));
    await proxy.started({}, module);
    await proxy.world.clock.advance(1_000);
    const skeletons = (): readonly unknown[] =>
      (["IPv4", "IPv6"] as const).map((one) => proxy.kernel.objects[one].get(`table ${one}`)?.value);
    expect(skeletons()).toEqual(["new facts", "new facts"]);
    const { applies } = proxy.kernel;
    const debug = proxy.world.log.lines.filter((line) => line.startsWith("debug synced")).length;
    proxy.kernel.emit({ kind: "facts", facts: "new facts" });
    await proxy.world.clock.advance(1_000);
    expect(proxy.kernel.applies).toBe(applies);
    expect(proxy.world.log.lines.filter((line) => line.startsWith("debug synced"))).toHaveLength(debug);
  });

  test("drift is found and mended", async () => {
    await proxy.started();
    proxy.kernel.objects.IPv4.clear();
    proxy.kernel.objects.IPv6.clear();
    proxy.kernel.emit({ kind: "drift", what: "somebody flushed" });
    await proxy.world.clock.advance(101);
    expect(proxy.kernel.objects.IPv4.size + proxy.kernel.objects.IPv6.size).toBeGreaterThan(0);
    expect(proxy.world.log.lines.some((line) => line.includes("somebody flushed"))).toBe(true);
  });

  /** The toy as a backend that hears nothing of what others do. */
  const deafModule = (): BackendModule => withBackends(toyModule(proxy.kernel), () => ({ watch: undefined, reportsDrift: undefined }));

  test.each([
    ["within a sync period where the backend tells nothing", deafModule, 30_000],
    ["within an hour where it says that it tells, and didn't", () => toyModule(proxy.kernel), 3_600_000],
  ])("what others did is mended %s, and told", async (_name, module, withinMs) => {
    await proxy.started({}, module());
    proxy.kernel.objects.IPv4.clear();
    await proxy.world.clock.advance(withinMs - 1_000);
    expect(proxy.kernel.objects.IPv4.size).toBe(0);
    await proxy.world.clock.advance(1_000);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
    expect(proxy.world.log.lines.filter((line) => line.includes("another program changed Turnout's objects"))).toHaveLength(1);
  });

  test("with the gate off nothing is repaired on notice, but with the next sync period", async () => {
    await proxy.started({ config: toyConfig({ repairsOnNotice: false }) });
    proxy.kernel.objects.IPv4.clear();
    proxy.kernel.emit({ kind: "drift", what: "somebody flushed" });
    await proxy.world.clock.advance(29_000);
    expect(proxy.kernel.objects.IPv4.size).toBe(0);
    await proxy.world.clock.advance(1_000);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
  });

  test("with the gate off that is so however long comparing takes", async () => {
    const { clock } = proxy.world;
    const slow = withBackends(toyModule(proxy.kernel), (inner) => ({
      observe: async (signal) => {
        await clock.sleep(2_000, signal);
        return await inner.observe(signal);
      },
    }));
    await proxy.started({ config: toyConfig({ repairsOnNotice: false }) }, slow);
    await clock.advance(2_000);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
    proxy.kernel.objects.IPv4.clear();
    await clock.advance(28_000);
    expect(proxy.kernel.objects.IPv4.size).toBe(0);
    await clock.advance(2_000);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
  });

  test("a backend that learns with its first look that it is told is compared once more, and then within an hour", async () => {
    let looks = 0;
    const learning = withBackends(toyModule(proxy.kernel), (inner, one) => {
      let looked = false;
      const observe: typeof inner.observe = (stop) => {
        looked = true;
        if (one === "IPv4") looks += 1;
        return inner.observe(stop);
      };
      return {
        observe,
        get reportsDrift() {
          return looked;
        },
      };
    });
    await proxy.started({}, learning);
    const first = looks;
    await proxy.world.clock.advance(30_000);
    expect(looks).toBe(first + 1);
    await proxy.world.clock.advance(3_500_000);
    expect(looks).toBe(first + 1);
    await proxy.world.clock.advance(100_000);
    expect(looks).toBe(first + 2);
  });

  test("watching the host is taken up again when it breaks, and what was missed is looked for", async () => {
    const module = toyModule(proxy.kernel);
    let watches = 0;
    const broken = withBackends(module, () => ({
      // eslint-disable-next-line require-yield
      watch: async function* () {
        watches += 1;
        await Promise.resolve();
        throw new ProxyError("tool_failed", "netlink is away");
      },
    }));
    await proxy.started({}, broken);
    const before = watches;
    proxy.kernel.objects.IPv4.clear();
    await proxy.world.clock.advance(1_000);
    await proxy.world.clock.advance(100);
    expect(watches).toBeGreaterThan(before);
    expect(proxy.kernel.objects.IPv4.has(SERVICE)).toBe(true);
    // What stays broken is tried once in a sync period.
    await proxy.world.clock.advance(60_000);
    const tried = watches;
    await proxy.world.clock.advance(60_000);
    expect(watches - tried).toBeLessThanOrEqual(4);
  });
});

describe("a host that lacks what the backend can do elsewhere", () => {
  const narrowed = (capabilities: Readonly<Record<string, string | true>>): BackendModule =>
    toyModule(proxy.kernel, { probe: () => Promise.resolve({ facts: "first facts", versions: {}, problems: [], capabilities }) });

  test("is served without it: the family is left out, and rows fail closed", async () => {
    await proxy.started({}, narrowed({ IPv6: "switched off", TCP: "not in this build" }));
    expect([...proxy.kernel.objects.IPv4.keys()]).toEqual(["table IPv4"]);
    expect(proxy.kernel.objects.IPv6.size).toBe(0);
    expect(proxy.world.log.lines.some((line) => line.includes("no IPv6: switched off"))).toBe(true);
    expect(proxy.world.log.lines.some((line) => line.includes("left out, no TCP: not in this build"))).toBe(true);
  });

  test("can't add what the module refuses", async () => {
    const module = { ...narrowed({ SCTP: true }), capabilities: { IPv4: true, SCTP: "never" } } as const;
    await expect(proxy.start({}, module)).rejects.toThrow("capabilities.SCTP is true, and the module refuses it: never: backend toy");
  });
});

test("a module's own world is made once, serves probe and dataplane, and is let go of at the end", async () => {
  const inner = toyModule(proxy.kernel);
  const seen: unknown[] = [];
  let closed = 0;
  const own = { ...proxy.world, extra: true, close: () => void closed++ };
  const module: BackendModule = {
    ...inner,
    createWorld: (base) => (seen.push(base), own),
    probe: (options, world, signal) => (seen.push(world), inner.probe(options, world, signal)),
    open: (options, world, signal) => (seen.push(world), inner.open(options, world, signal)),
  };
  const done = proxy.start({}, module);
  proxy.pushBoth();
  await flushPromises();
  expect(closed).toBe(0);
  proxy.stop.abort();
  await done;
  expect(seen).toEqual([proxy.world, own, own]);
  expect(closed).toBe(1);
});

describe("health check node ports", () => {
  test("open after the first successful sync with the service, and follow it", async () => {
    const port = await freePort();
    const status = async (): Promise<number | "closed"> =>
      fetch(`http://127.0.0.1:${port}`).then(
        (response) => response.status,
        () => "closed" as const,
      );
    void proxy.start({ config: toyConfig({ settings: { ...toyConfig().settings, nodePortAddresses: ["localhost"] } }) });
    proxy.kernel.failures.push(
      new ProxyError("tool_failed", "one"),
      new ProxyError("tool_failed", "two"),
      new ProxyError("tool_failed", "three"),
    );
    proxy.pushBoth();
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("web", { healthCheck: { port, readyLocal: 1 } })] }));
    for (let second = 0; second < 5; second += 1) await proxy.world.clock.advance(1_000);
    await eventually("the port is open", async () => (await status()) === 200);
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("web", { healthCheck: { port, readyLocal: 0 } })] }));
    await proxy.world.clock.advance(100);
    await eventually("no endpoint here", async () => (await status()) === 503);
    proxy.feeds.IPv4.push(toyChange({ delete: ["shop/web:http/TCP"] }));
    await proxy.world.clock.advance(100);
    await eventually("the port is closed", async () => (await status()) === "closed");
    expect(proxy.world.log.lines.filter((line) => line.includes("health check node port"))).toEqual([]);
  });
});

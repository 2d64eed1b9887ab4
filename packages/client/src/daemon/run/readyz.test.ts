import { ProxyError, type BackendModule, type ServicePort } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVICE, toyConfig, ToyProxy } from "../../test-support/toy-proxy.ts";
import type { ProxyEvent } from "../events/proxy-events.ts";
import {
  eventually,
  flushPromises,
  freePort,
  toyChange,
  toyFull,
  toyModule,
  toyNode,
  toyRow,
  withBackends,
} from "../../test-support/toys.ts";

let proxy: ToyProxy;
let port: number;

beforeEach(async () => {
  proxy = new ToyProxy();
  port = await freePort();
});

afterEach(() => proxy.end());

/** Which host refuses every address of 10.96.6.0/24. */
function refusing(): BackendModule {
  return withBackends(toyModule(proxy.kernel), (inner) => ({
    apply: (plan, signal) =>
      JSON.stringify(plan).includes("10.96.6.") ? Promise.reject(new ProxyError("tool_failed", "refused")) : inner.apply(plan, signal),
  }));
}

/** A row that such a host refuses. */
function badRow(name: string, number: number): ServicePort {
  const row = toyRow(name);
  return { ...row, destinations: row.destinations.map((one) => ({ ...one, address: `10.96.6.${number}` })) };
}

async function start(module: BackendModule = toyModule(proxy.kernel)): Promise<void> {
  void proxy.start({ config: toyConfig({ healthzBindAddress: { ip: "127.0.0.1", port } }) }, module);
  await eventually("the health server", () => proxy.world.log.lines.some((line) => line.startsWith("info serving healthz")));
}

async function ask(path: string): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/${path}`)).status;
}

async function advance(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await proxy.world.clock.advance(1_000);
}

/** Have the host hold what a former process left. */
function leftBehind(): void {
  proxy.kernel.objects.IPv4.set("table IPv4", { kind: "table", key: "IPv4", value: "first facts" });
  proxy.kernel.objects.IPv4.set(SERVICE, { kind: "service", key: "10.96.0.10:80", value: ["10.1.0.5"] });
  proxy.kernel.objects.IPv6.set("table IPv6", { kind: "table", key: "IPv6", value: "first facts" });
}

describe("/readyz", () => {
  test("answers 503 until the first sync of each family is done, and says why", async () => {
    await start();
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    await flushPromises();
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { ready: false, status: { IPv4: "ready", IPv6: "the first sync is not done" } },
    ]);
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    await flushPromises();
    expect(await ask("readyz")).toBe(200);
    // At each start it is not ready at first: no line says so.
    expect(proxy.world.log.lines.filter((line) => line.includes("/readyz"))).toEqual([]);
  });

  test("waits for all rows of the first state where a turn does not do all, and not for those that come meanwhile", async () => {
    proxy.kernel.stepsPerTurn = 1;
    await start();
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    proxy.feeds.IPv4.push(toyFull([toyRow("cart")]));
    await flushPromises();
    expect(await ask("readyz")).toBe(503);
    const later = toyRow("later");
    proxy.feeds.IPv4.push(
      toyChange({ set: [{ ...later, destinations: later.destinations.map((one) => ({ ...one, address: "10.96.0.11" })) }] }),
    );
    await advance(1);
    expect(await ask("readyz")).toBe(200);
  });

  test("stays 200 whatever a tenant's rows do: refused at the start, later, and for long", async () => {
    leftBehind();
    await start(refusing());
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    proxy.feeds.IPv4.push(toyFull([toyRow("cart"), badRow("one", 1), badRow("two", 2)]));
    await flushPromises();
    expect(await ask("readyz")).toBe(200);
    // All that is new is refused, with nothing of another namespace.
    proxy.feeds.IPv4.push(toyChange({ set: [badRow("three", 3), badRow("four", 4)] }));
    await advance(61);
    expect([await ask("readyz"), await ask("healthz")]).toEqual([200, 200]);
    // Two namespaces at once look like a host that fails: that is for /healthz to say.
    const elsewhere = badRow("six", 6);
    proxy.feeds.IPv4.push(toyChange({ set: [badRow("five", 5), { ...elsewhere, key: "attic/six:http/TCP" }] }));
    await advance(61);
    expect([await ask("readyz"), await ask("healthz")]).toEqual([200, 503]);
  });

  test("answers 503 on a new host that refuses everything", async () => {
    proxy.kernel.failures.push(...Array.from({ length: 500 }, () => new ProxyError("tool_failed", "toy refuses")));
    await start();
    proxy.pushBoth();
    await advance(40);
    expect(await ask("readyz")).toBe(503);
    proxy.kernel.failures.length = 0;
    await advance(40);
    expect(await ask("readyz")).toBe(200);
  });

  test("answers 503 on a new host that takes the table and no Service", async () => {
    await start(refusing());
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    proxy.feeds.IPv4.push(toyFull([badRow("one", 1), { ...badRow("two", 2), key: "attic/two:http/TCP" }]));
    await advance(5);
    expect([await ask("readyz"), [...proxy.kernel.objects.IPv4.keys()]]).toEqual([503, ["table IPv4"]]);
  });

  test("answers 200 with the rules of a former process when the first sync fails, which is for /healthz to say", async () => {
    leftBehind();
    proxy.kernel.failures.push(...Array.from({ length: 500 }, () => new ProxyError("timed_out", "the tool hangs")));
    await start();
    proxy.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    proxy.feeds.IPv4.push(toyFull([toyRow("cart"), badRow("new", 1)]));
    await advance(61);
    expect([await ask("readyz"), await ask("healthz")]).toEqual([200, 503]);
  });

  test("answers 200 with the rules of a former process while the source says nothing, and 503 without any", async () => {
    leftBehind();
    await start();
    expect(await ask("readyz")).toBe(503);
    await advance(31);
    expect(await ask("readyz")).toBe(200);
    for (const isThere of [true, false]) {
      await proxy.end();
      proxy = new ToyProxy();
      if (isThere) leftBehind();
      // What is left without the table is no rules.
      proxy.kernel.objects.IPv4.delete("table IPv4");
      await start();
      await advance(61);
      expect([await ask("readyz"), proxy.kernel.objects.IPv4.size]).toEqual([503, isThere ? 1 : 0]);
    }
  });

  test("answers 503 while the host lacks the table, says which, and 200 when it is repaired", async () => {
    await start();
    proxy.pushBoth();
    await flushPromises();
    expect(await ask("readyz")).toBe(200);
    proxy.kernel.objects.IPv6.clear();
    proxy.kernel.failures.push(...Array.from({ length: 500 }, () => new ProxyError("tool_failed", "toy refuses")));
    proxy.kernel.emit({ kind: "drift", what: "another program" });
    await advance(2);
    expect(await ask("readyz")).toBe(503);
    expect(proxy.world.log.lines).toContain("warn /readyz answers 503 reason=IPv6: the host lacks table IPv6");
    proxy.kernel.failures.length = 0;
    await advance(40);
    expect(await ask("readyz")).toBe(200);
  });
});

/** The value of `turnout_not_in_force` for a kind. */
async function notInForce(what: string): Promise<string | undefined> {
  return new RegExp(`^turnout_not_in_force\\{what="${what}"\\} (\\d+)$`, "m").exec(await proxy.metrics.text())?.[1];
}

describe("what is not in force", () => {
  test("R-55 a Service that the host refuses has an event and is counted, once for all its ports, and again after it was in force", async () => {
    const events: string[] = [];
    const onEvent = ({ reason, note, service, isOfCluster }: ProxyEvent): void =>
      void events.push(`${reason} ${service?.name} ${isOfCluster} ${note}`);
    void proxy.start({ onEvent }, refusing());
    proxy.pushBoth();
    await flushPromises();
    const other = { ...badRow("bad", 2), key: "shop/bad:web/TCP" };
    proxy.feeds.IPv4.push(toyChange({ set: [badRow("bad", 1), other] }));
    await advance(1);
    const said =
      "RefusedByHost bad true port http/TCP is not in force on node node1, or only in part: [tool_failed] refused; it is tried again by itself, see turnout status there";
    expect([events, await notInForce("service")]).toEqual([[said], "1"]);
    proxy.feeds.IPv4.push(toyChange({ set: [toyRow("fine")] }));
    await advance(40);
    expect(events).toEqual([said]);
    proxy.feeds.IPv4.push(toyChange({ delete: [other.key, "shop/bad:http/TCP"] }));
    await advance(1);
    expect(await notInForce("service")).toBe("0");
    proxy.feeds.IPv4.push(toyChange({ set: [badRow("bad", 1)] }));
    await advance(1);
    expect(events).toEqual([said, said]);
  });

  test("a part of the source counts after a sync period, and what is reported about objects at once", async () => {
    await proxy.started();
    proxy.metrics.sources.note("Service", "connection refused");
    await advance(30);
    expect(await notInForce("source")).toBe("0");
    proxy.metrics.sources.note("Service", "no route");
    await advance(1);
    expect(await notInForce("source")).toBe("1");
    proxy.metrics.sources.note("Service", "");
    expect([await notInForce("source"), await notInForce("object")]).toEqual(["0", "0"]);
  });
});

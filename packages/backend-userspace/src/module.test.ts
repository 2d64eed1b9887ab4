import type { Dataplane, HostEvent, Outcome, Plain } from "@turnout/core";
import { rawNode, rawService, rawSlice, stateOfObjects, TestProxy, type RawObject } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { userspaceModule } from "./module.ts";
import type { UserspaceObject } from "./objects.ts";
import type { Step } from "./plan.ts";
import type { UserspaceFacts } from "./render.ts";
import { createFakeHost } from "./testing/index.ts";
import type { FakeClient, UserspaceFakeHost } from "./testing/index.ts";

const { signal } = new AbortController();
const NODE = rawNode("node1", { addresses: ["172.18.0.1"], podCIDRs: ["10.1.1.0/24"] });
const SLICE = rawSlice("cart", [{ ip: "10.1.1.1" }, { ip: "10.1.2.1" }]);
const CART = rawService("cart", {
  type: "NodePort",
  clusterIP: "10.96.0.20",
  externalIPs: ["198.51.100.1"],
  ports: [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_080 }],
});

type UserspaceProxy = TestProxy<UserspaceFacts, UserspaceObject, Step, readonly RawObject[]>;

/** A proxy process of one family on a fake host, kept in step by hand. */
interface ProxyProcess extends Pick<UserspaceProxy, "backend" | "ledger"> {
  readonly host: UserspaceFakeHost;
  readonly dataplane: Dataplane<UserspaceFacts, UserspaceObject, Step>;
  /** Bring these Services, and nothing else, into force. */
  sync(...objects: readonly RawObject[]): Promise<Outcome<UserspaceObject>>;
  client(ip: string, port: number): FakeClient | undefined;
}

async function openProxy(raw: Readonly<Record<string, Plain>> = {}): Promise<ProxyProcess> {
  const host = createFakeHost();
  const dataplane = await userspaceModule.open(userspaceModule.parseOptions(raw), host.world, signal);
  const backend = dataplane.family("IPv4");
  const { facts } = await userspaceModule.probe(userspaceModule.parseOptions({}), host.world, signal);
  const proxy: UserspaceProxy = new TestProxy(backend, {
    host: facts,
    stateOf: (objects) => stateOfObjects([NODE, ...objects], { settings: { nodePortAddresses: ["primary"] } }),
    nowMs: () => host.world.clock.nowMs(),
  });
  return {
    host,
    dataplane,
    backend,
    ledger: proxy.ledger,
    sync: (...objects) => proxy.apply(objects),
    client(ip, port): FakeClient | undefined {
      const client = host.sockets.client({ ip: "203.0.113.1", port: 40_000 }, { ip, port });
      client?.answer("answers");
      return client;
    },
  };
}

function leftOut({ host }: ProxyProcess): readonly string[] {
  return host.lines.filter((line) => line.includes("left out"));
}

const OWN = ["TCP 10.96.0.20:80", "TCP 172.18.0.1:30080", "TCP 198.51.100.1:80"];

describe("where a Service is answered", () => {
  it("is on its own addresses, and its node port on the node's, where that is permitted", async () => {
    const proxy = await openProxy();
    await proxy.sync(CART, SLICE);
    expect(proxy.host.sockets.open).toEqual(OWN);
    expect(proxy.host.own()).toContain("IPv4 address 198.51.100.1 on turnout0");
    expect(leftOut(proxy)).toEqual([]);
  });

  it("is where it is mapped, and the rest is left out and said once", async () => {
    const proxy = await openProxy({ map: ["shop/cart:http=127.0.0.1:8080"] });
    await proxy.sync(CART, SLICE);
    await proxy.sync(CART, rawSlice("cart", [{ ip: "10.1.1.1" }]));
    expect(proxy.host.sockets.open).toEqual(["TCP 127.0.0.1:8080", "TCP 172.18.0.1:30080"]);
    expect(leftOut(proxy)).toEqual([
      'warn left out: 198.51.100.1:80 {"object":"Service port shop/cart:http/TCP","hint":"not mapped: name it in --map too, or pass own-addresses=true"}',
    ]);
    expect(proxy.client("127.0.0.1", 8080)?.dialled).toEqual(["10.1.1.1:8080"]);
  });

  it("is by its address where that is mapped, beside its own", async () => {
    const proxy = await openProxy({ map: ["198.51.100.1:80=127.0.0.1:8081"], "own-addresses": true });
    await proxy.sync(CART, SLICE);
    expect(proxy.host.sockets.open).toEqual(["TCP 10.96.0.20:80", "TCP 127.0.0.1:8081", "TCP 172.18.0.1:30080", "TCP 198.51.100.1:80"]);
  });

  it("is nowhere but on the node when it may not take addresses and nothing is mapped", async () => {
    const proxy = await openProxy({ "own-addresses": false });
    await proxy.sync(CART, SLICE);
    expect(proxy.host.sockets.open).toEqual(["TCP 172.18.0.1:30080"]);
    expect(leftOut(proxy)[0]).toContain("left out: 10.96.0.20:80, 198.51.100.1:80");
  });

  it("is by name not for a map of the other family or another protocol", async () => {
    const proxy = await openProxy({ map: ["shop/cart:http=[::1]:8080", "shop/cart:http/UDP=127.0.0.1:8081"] });
    await proxy.sync(CART, SLICE);
    expect(proxy.host.sockets.open).toEqual(["TCP 172.18.0.1:30080"]);
  });
});

describe("the PROXY protocol", () => {
  it.each<[string, string | undefined]>([
    ["shop/cart:http", "PROXY TCP4 203.0.113.1 10.96.0.20 40000 80\r\n"],
    ["*", "PROXY TCP4 203.0.113.1 10.96.0.20 40000 80\r\n"],
    ["shop/cart:admin", undefined],
  ])("is for the service ports it was asked for: %s", async (name, expected) => {
    const proxy = await openProxy({ "proxy-protocol": "v1", "proxy-protocol-for": [name] });
    await proxy.sync(CART, SLICE);
    const head = proxy.client("10.96.0.20", 80)?.head;
    expect(head === undefined ? undefined : new TextDecoder().decode(head)).toBe(expected);
  });
});

describe("a map that names nothing there is", () => {
  it("is said once, when all was looked at first", async () => {
    const proxy = await openProxy({ map: ["shop/crat:http=127.0.0.1:8080", "shop/cart:http=127.0.0.1:8081", "shop/cart:http=[::1]:8080"] });
    await proxy.sync(CART, SLICE);
    await proxy.sync();
    expect(proxy.host.lines.filter((line) => line.includes("names no service port"))).toEqual([
      'warn a map names no service port there is {"map":"shop/crat:http","hint":"turnout print shows the service ports of a source"}',
    ]);
  });
});

describe("what can't be brought into force", () => {
  it("fails by itself, and all else is", async () => {
    const proxy = await openProxy();
    const taken = proxy.host.sockets.listen(
      { ip: "172.18.0.1", port: 30_080 },
      () => undefined,
      () => undefined,
    );
    await taken.opened;
    const { failed } = await proxy.sync(CART, SLICE);
    expect([...(failed ?? [])].map(([id, { code }]) => [id, code])).toEqual([["node-port TCP 172.18.0.1:30080", "already_exists"]]);
    expect(proxy.client("10.96.0.20", 80)?.state).toBe("open");
    taken.close();
    proxy.ledger.retryFailed();
    expect((await proxy.sync(CART, SLICE)).failed?.size).toBe(0);
    expect(proxy.host.sockets.open).toEqual(OWN);
  });

  it("is what the process may not do, said before it starts", async () => {
    const host = createFakeHost();
    const world = { ...host.world, canOwnAddresses: () => Promise.resolve(false) };
    const problemsOf = async (raw: Readonly<Record<string, Plain>>): Promise<readonly string[]> => {
      const { problems } = await userspaceModule.probe(userspaceModule.parseOptions(raw), world, signal);
      return problems.map(({ code }) => code);
    };
    expect([await problemsOf({ "own-addresses": true }), await problemsOf({})]).toEqual([["permission_denied"], []]);
  });
});

describe("what goes", () => {
  it("keeps its address while a connection lasts, and is asked about again until then", async () => {
    const proxy = await openProxy();
    await proxy.sync(CART, SLICE);
    const client = proxy.client("10.96.0.20", 80);
    const { lingering } = await proxy.sync();
    expect((lingering ?? []).map(({ object }) => `${object.kind} ${object.key}`).toSorted()).toEqual([
      "address 10.96.0.20",
      "listener TCP 10.96.0.20:80",
    ]);
    expect((lingering ?? []).map(({ afterMs }) => afterMs)).toEqual([2_000, 2_000]);
    const found = await proxy.backend.observe(signal);
    expect((found?.lingering ?? []).map(({ kind, key }) => `${kind} ${key}`)).toEqual(["listener TCP 10.96.0.20:80", "address 10.96.0.20"]);
    expect([...(found?.objects.keys() ?? [])].filter((id) => id.includes("10.96.0.20"))).toEqual([]);
    expect([proxy.host.sockets.open, proxy.host.own()]).toEqual([[], ["IPv4 address 10.96.0.20 on turnout0"]]);
    client?.close();
    await proxy.host.advance(2_000);
    expect(await proxy.sync()).toEqual({ failed: new Map(), lingering: [] });
    expect([proxy.host.own(), (await proxy.backend.observe(signal))?.lingering]).toEqual([[], []]);
  });

  it("may come back while it lingers", async () => {
    const proxy = await openProxy();
    await proxy.sync(CART, SLICE);
    const client = proxy.client("10.96.0.20", 80);
    await proxy.sync();
    expect((await proxy.sync(CART, SLICE)).lingering).toEqual([]);
    expect([client?.state, proxy.host.sockets.open]).toEqual(["open", OWN]);
  });

  it("is waited for when the process ends, until that is called off", async () => {
    const proxy = await openProxy();
    await proxy.sync(CART, SLICE);
    const client = proxy.client("10.96.0.20", 80);
    const late = new AbortController();
    const closing = proxy.dataplane.close(late.signal);
    await proxy.host.advance(1_000);
    expect([client?.state, proxy.host.sockets.open]).toEqual(["open", []]);
    late.abort();
    await closing;
    expect([client?.state, proxy.host.own()]).toEqual(["reset", []]);
  });

  it("is not waited for when nothing is open", async () => {
    const proxy = await openProxy();
    await proxy.sync(CART, SLICE);
    proxy.client("10.96.0.20", 80)?.close();
    await proxy.dataplane.close(signal);
    expect([proxy.host.own(), (await proxy.backend.metrics?.())?.find(({ name }) => name.endsWith("connections_total"))?.value]).toEqual([
      [],
      1,
    ]);
  });
});

describe("what somebody else does", () => {
  it("to our addresses, and what becomes of a listener, is told; what we do ourselves is not", async () => {
    const proxy = await openProxy();
    const stop = new AbortController();
    const events = proxy.backend.watch?.(stop.signal)[Symbol.asyncIterator]();
    expect(await events?.next()).toMatchObject({ value: { kind: "facts" } });
    const first = events?.next();
    await proxy.sync(CART, SLICE);
    await proxy.host.advance(0);
    proxy.host.tamper(() => 0);
    expect(await first).toEqual({
      done: false,
      value: { kind: "drift", what: "addresses on turnout0 were changed; the kernel does not tell by whom" },
    });
    proxy.host.sockets.fail({ ip: "10.96.0.20", port: 80 }, new Error("EBADF"));
    const reported: string[] = [];
    // The addresses are told of again while nobody mends them.
    while (!reported.includes("listener TCP 10.96.0.20:80 failed; the kernel does not tell whether by another program")) {
      const { value } = (await events!.next()) as IteratorYieldResult<HostEvent<UserspaceFacts>>;
      reported.push(value.kind === "drift" ? value.what : value.kind);
    }
    expect(reported).not.toContain("facts");
    expect([...((await proxy.backend.observe(signal))?.objects.keys() ?? [])]).not.toContain("listener TCP 10.96.0.20:80");
    stop.abort();
  });
});

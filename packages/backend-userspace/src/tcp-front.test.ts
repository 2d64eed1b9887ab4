import { describe, expect, it } from "vitest";
import { AT, createFrontStage, from, listenerOf, stageOf } from "./test-support/fronts.ts";

const A = "10.1.1.1:8080";
const B = "10.1.1.2:8080";
const C = "10.1.1.3:8080";

describe("TCP connections", () => {
  it("go to an endpoint, and end with both sides", async () => {
    const { fronts, sockets, traffic } = await stageOf([A, B]);
    const client = sockets.client(from(1), AT);
    client?.answer("answers");
    expect(client).toMatchObject({ state: "open", dialled: [A] });
    expect([fronts.connections, traffic.shared.connections.size]).toEqual([1, 1]);
    client?.close();
    expect([fronts.connections, traffic.shared.connections.size]).toEqual([0, 0]);
  });

  it("try each endpoint once, whatever is wrong with it, and are reset when none is left", async () => {
    const { fronts, sockets, log } = await stageOf([A, B, C]);
    const client = sockets.client(from(1), AT);
    client?.answer("refuses");
    client?.answer("is silent");
    expect(client).toMatchObject({ state: "waiting", dialled: [A, B, C] });
    client?.answer("refuses");
    expect(client).toMatchObject({ state: "reset", dialled: [A, B, C] });
    expect(fronts.connections).toBe(0);
    expect(log.lines.filter(({ message }) => message === "an endpoint can't be reached")).toHaveLength(3);
  });

  it("that are dialled again go where the listener leads by now", async () => {
    const { fronts, sockets } = await stageOf([A, B]);
    const client = sockets.client(from(1), AT);
    await fronts.put(listenerOf([A, C]));
    client?.answer("refuses");
    expect(client?.dialled).toEqual([A, C]);
  });

  it("give up after eight endpoints", async () => {
    const { sockets } = await stageOf(Array.from({ length: 20 }, (_, index) => `10.1.2.${index}:80`));
    const client = sockets.client(from(1), AT);
    for (let count = 0; count < 20; count++) client?.answer("refuses");
    expect(client?.dialled).toHaveLength(8);
    expect(client?.state).toBe("reset");
  });

  it("whose client leaves while an endpoint is dialled are over", async () => {
    const { fronts, sockets } = await stageOf([A]);
    const client = sockets.client(from(1), AT);
    client?.close();
    client?.answer("answers");
    expect([client?.state, fronts.connections]).toEqual(["closed", 0]);
  });

  it("are reset where nobody may come", async () => {
    const { sockets } = await stageOf([]);
    expect(sockets.client(from(1), AT)).toMatchObject({ state: "reset", dialled: [] });
  });

  it("take turns when asked to", async () => {
    const { sockets } = await stageOf([A, B, C], { balance: "round-robin" });
    const dialled = [1, 2, 3, 4].map((number) => sockets.client(from(number), AT)?.dialled[0]);
    expect(dialled).toEqual([A, B, C, A]);
  });

  it.each([
    ["max-connections", "max-connections=2"],
    ["max-connections-per-listener", "max-connections-per-listener=2"],
  ])("above %s are refused, said once a minute, until others end", async (option, said) => {
    const { sockets, log, clock } = await stageOf([A], { [option]: 2 });
    const clients = [1, 2, 3, 4].map((number) => sockets.client(from(number), AT));
    expect(clients.map((client) => client?.state)).toEqual(["waiting", "waiting", "reset", "reset"]);
    const refusals = (): readonly string[] =>
      log.lines.filter(({ message }) => message.startsWith("a connection was refused")).map(({ fields }) => JSON.stringify(fields));
    expect(refusals()).toHaveLength(1);
    expect(refusals()[0]).toContain(said);
    clients[0]?.close();
    expect(sockets.client(from(5), AT)?.state).toBe("waiting");
    await clock.advance(61_000);
    sockets.client(from(6), AT);
    expect(refusals()).toHaveLength(2);
  });

  it("tell the endpoint who their client is where that is asked for", async () => {
    const { sockets } = await stageOf([A], {}, { proxyProtocol: "v1" });
    const client = sockets.client(from(1), AT);
    client?.answer("answers");
    expect(new TextDecoder().decode(client?.head)).toBe("PROXY TCP4 203.0.113.1 10.96.0.10 40001 80\r\n");
  });

  it("go elsewhere than the endpoint says where that is mapped", async () => {
    const { sockets } = await stageOf([A], { "endpoint-map": [`${A}=127.0.0.1:9001`] });
    expect(sockets.client(from(1), AT)?.dialled).toEqual(["127.0.0.1:9001"]);
  });
});

describe("a Service whose endpoints are sockets of this proxy", () => {
  const SELF = "10.96.0.10:80";
  it.each([
    ["itself", [SELF], [], []],
    ["itself and a pod", [SELF, A], [], [A]],
    ["another Service, which leads back", ["127.0.0.1:81"], [{ ip: "127.0.0.1", port: 81 }], []],
    ["an address of this host, where one listens on all of them", ["172.18.0.1:82"], [{ ip: "0.0.0.0", port: 82 }], []],
    ["a process of this host at another port", ["172.18.0.1:83"], [{ ip: "0.0.0.0", port: 82 }], ["172.18.0.1:83"]],
    ["another host's, where one listens on all addresses", ["172.18.0.9:82"], [{ ip: "0.0.0.0", port: 82 }], ["172.18.0.9:82"]],
  ])("is dialled to %s: never a socket of this proxy", async (_name, endpoints, others, dialled) => {
    const { fronts, sockets, log } = await stageOf(endpoints);
    for (const at of others)
      await fronts.put(listenerOf([SELF], { ...at, row: "shop/other:http/TCP", asked: { address: at.ip, port: at.port } }));
    const client = sockets.client(from(1), AT);
    expect(client?.dialled).toEqual(dialled);
    expect(client?.state).toBe(dialled.length === 0 ? "reset" : "waiting");
    expect(log.lines.some(({ message }) => message.includes("is a socket of this proxy"))).toBe(!dialled.includes(endpoints[0] ?? ""));
  });

  it("is dialled again once that socket is closed", async () => {
    const { fronts, sockets } = await stageOf(["127.0.0.1:81"]);
    const other = listenerOf([A], { ip: "127.0.0.1", port: 81, row: "shop/other:http/TCP", asked: { address: "127.0.0.1", port: 81 } });
    await fronts.put(other);
    expect(sockets.client(from(1), AT)?.dialled).toEqual([]);
    await fronts.remove(other);
    expect(sockets.client(from(2), AT)?.dialled).toEqual(["127.0.0.1:81"]);
  });
});

describe("TCP clients at the limit of all", () => {
  it("of one Service leave another's theirs, and give back what another wants", async () => {
    const { fronts, sockets, traffic } = await stageOf([A], { "max-connections": 10 });
    const at = { ip: "127.0.0.1", port: 81 };
    await fronts.put(listenerOf([B], { ...at, row: "flood/web:http/TCP", asked: { address: at.ip, port: at.port } }));
    const flood = Array.from({ length: 20 }, (_, number) => sockets.client(from(number), at));
    expect(flood.filter((client) => client?.state === "waiting")).toHaveLength(10);
    const own = Array.from({ length: 5 }, (_, number) => sockets.client(from(number), AT));
    expect([own, flood].map((clients) => clients.filter((client) => client?.state === "waiting").length)).toEqual([5, 5]);
    const more = Array.from({ length: 5 }, (_, number) => sockets.client(from(50 + number), at));
    expect([...more, ...own].map((client) => client?.state)).toEqual([...more.map(() => "reset"), ...own.map(() => "waiting")]);
    expect(traffic.shared.connections.size).toBe(10);
  });

  it("give back a place each where several come before the first socket is closed", async () => {
    const { fronts, sockets, traffic } = await stageOf([A], { "max-connections": 10 });
    const at = { ip: "127.0.0.1", port: 81 };
    await fronts.put(listenerOf([B], { ...at, row: "flood/web:http/TCP", asked: { address: at.ip, port: at.port } }));
    const closing: (() => void)[] = [];
    const join = sockets.join.bind(sockets);
    sockets.join = (...parts) => {
      const joined = join(...parts);
      return { reset: () => void closing.push(() => joined.reset()) };
    };
    for (let number = 0; number < 10; number++) sockets.client(from(number), at)?.answer("answers");
    for (let number = 0; number < 5; number++) sockets.client(from(number), AT)?.answer("answers");
    expect([traffic.shared.connections.size, closing.length]).toEqual([10, 5]);
    for (const close of closing) close();
    expect([traffic.shared.connections.size, fronts.connections]).toEqual([10, 10]);
  });
});

describe("affine TCP clients", () => {
  it("stay, by whatever way they come, for so long, and are let go with their endpoint", async () => {
    const { fronts, sockets, clock, traffic } = createFrontStage({ balance: "round-robin" });
    const way = listenerOf([A, B], { affinitySeconds: 10 });
    const other = listenerOf(
      [A, B],
      { affinitySeconds: 10, ip: "127.0.0.1", port: 30_080, asked: { address: "", port: 30_080 } },
      "node-port",
    );
    await fronts.put(way);
    await fronts.put(other);
    const dialled = (ip: string, at: { readonly ip: string; readonly port: number } = AT): string | undefined => {
      const client = sockets.client(from(1, ip), at);
      client?.answer("answers");
      client?.close();
      return client?.dialled[0];
    };
    expect([dialled("203.0.113.1"), dialled("203.0.113.2")]).toEqual([A, B]);
    expect([dialled("203.0.113.1"), dialled("203.0.113.2", { ip: "127.0.0.1", port: 30_080 })]).toEqual([A, B]);
    await clock.advance(9_999);
    expect(dialled("203.0.113.1")).toBe(A);
    await clock.advance(10_000);
    expect(traffic.affinity.find("shop/cart:http/TCP", "203.0.113.1")).toBeUndefined();
    dialled("203.0.113.7");
    const kept = traffic.affinity.find("shop/cart:http/TCP", "203.0.113.7");
    const left = [A, B].filter((one) => one !== kept);
    await fronts.put(listenerOf(left, { affinitySeconds: 10 }));
    fronts.retainAffinity(["shop/cart:http/TCP"]);
    expect(traffic.affinity.find("shop/cart:http/TCP", "203.0.113.7")).toBe(kept);
    await fronts.remove(other);
    fronts.retainAffinity(["shop/cart:http/TCP"]);
    expect(traffic.affinity.find("shop/cart:http/TCP", "203.0.113.7")).toBeUndefined();
  });

  it("that come while the first is being connected go the same way, unless that fails", async () => {
    const { sockets } = await stageOf([A, B, C], { balance: "round-robin" }, { affinitySeconds: 10 });
    const [one, two] = [sockets.client(from(1), AT), sockets.client(from(2), AT)];
    expect([one?.dialled, two?.dialled]).toEqual([[A], [A]]);
    one?.answer("refuses");
    two?.answer("refuses");
    expect([one?.dialled, two?.dialled]).toEqual([
      [A, C],
      [A, C],
    ]);
  });

  it("that never got to an endpoint are not remembered", async () => {
    const { sockets, traffic } = await stageOf([A], {}, { affinitySeconds: 10 });
    sockets.client(from(1), AT)?.answer("refuses");
    expect(traffic.affinity.size).toBe(0);
  });

  it("of what is gone leave nothing behind", async () => {
    const { sockets, traffic, clock } = await stageOf([A], {}, { affinitySeconds: 10 });
    for (let count = 0; count < 100; count++) {
      const client = sockets.client(from(1, `203.0.113.${count}`), AT);
      client?.answer("answers");
      client?.close();
    }
    expect(traffic.affinity.size).toBe(100);
    await clock.advance(60_000);
    expect(traffic.affinity.size).toBe(0);
  });
});

describe("listeners that go", () => {
  it("take no more clients; connections go on", async () => {
    const { fronts, sockets, clock } = createFrontStage();
    const object = listenerOf([A]);
    await fronts.put(object);
    const client = sockets.client(from(1), AT);
    client?.answer("answers");
    await fronts.remove(object);
    expect(sockets.open).toEqual([]);
    await clock.advance(86_400_000);
    expect([client?.state, fronts.isDrained(object.key), fronts.isAddressInUse("10.96.0.10")]).toEqual(["open", false, true]);
    client?.close();
    expect([fronts.isDrained(object.key), fronts.isAddressInUse("10.96.0.10")]).toEqual([true, false]);
  });

  it("and endpoints that go, are waited for as long as was asked", async () => {
    const { fronts, sockets, clock } = createFrontStage({ "drain-timeout": 30 });
    const gone = listenerOf([A], { port: 81 });
    await fronts.put(listenerOf([A, B]));
    await fronts.put(gone);
    const clients = [AT, AT, { ...AT, port: 81 }].map((at, index) => sockets.client(from(index), at));
    clients.forEach((client) => client?.answer("answers"));
    await fronts.put(listenerOf([B]));
    const stays = sockets.client(from(7), AT);
    stays?.answer("answers");
    await fronts.remove(gone);
    await clock.advance(29_000);
    expect(clients.map((client) => client?.state)).toEqual(["open", "open", "open"]);
    await clock.advance(9_000);
    expect(clients.map((client) => client?.state)).toEqual(["reset", "reset", "reset"]);
    expect(stays?.state).toBe("open");
    expect(fronts.isDrained(gone.key)).toBe(true);
  });

  it("are waited for no longer when the endpoint went while it was dialled", async () => {
    const { fronts, sockets, clock } = await stageOf([A], { "drain-timeout": 30 });
    const client = sockets.client(from(1), AT);
    await fronts.put(listenerOf([B]));
    client?.answer("answers");
    expect(client).toMatchObject({ state: "open", dialled: [A] });
    await clock.advance(40_000);
    expect(client?.state).toBe("reset");
  });

  it("share a socket with a node port, which answers when the address's own listener is gone", async () => {
    const { fronts, sockets } = createFrontStage();
    const own = listenerOf([A]);
    const nodePort = listenerOf([B], { asked: { address: "", port: 80 } }, "node-port");
    await fronts.put(nodePort);
    await fronts.put(own);
    expect(sockets.client(from(1), AT)?.dialled).toEqual([A]);
    await fronts.put(nodePort);
    expect(sockets.client(from(3), AT)?.dialled).toEqual([A]);
    await fronts.remove(own);
    expect(sockets.client(from(2), AT)?.dialled).toEqual([B]);
    await fronts.remove(nodePort);
    expect(sockets.open).toEqual([]);
  });

  it("by themselves are told of", async () => {
    const { fronts, sockets, lost } = await stageOf([A]);
    sockets.fail(AT, new Error("EBADF"));
    expect([lost, sockets.open]).toEqual([["listener TCP 10.96.0.10:80"], []]);
    expect(await fronts.put(listenerOf([A]))).toBeUndefined();
    expect(sockets.open).toEqual(["TCP 10.96.0.10:80"]);
  });

  it("can't come where another program is, or where the host has no address", async () => {
    const { fronts, sockets } = createFrontStage();
    const other = sockets.listen(
      AT,
      () => undefined,
      () => undefined,
    );
    await other.opened;
    expect((await fronts.put(listenerOf([A])))?.message).toBe(
      "[already_exists] another program has this port: listener TCP 10.96.0.10:80: find it with: ss -lnptu, and end it, or map another port",
    );
    other.close();
    expect(await fronts.put(listenerOf([A]))).toBeUndefined();
    expect((await fronts.put(listenerOf([A], { ip: "10.96.0.99" })))?.message).toContain("the host has no such address");
  });
});

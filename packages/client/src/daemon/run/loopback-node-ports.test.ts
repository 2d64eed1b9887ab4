import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { afterEach, expect, it, test } from "vitest";
import { DEFAULT_SETTINGS, type ServicePort, type Variants } from "@turnout/core";
import { rawNode, rawService, rawSlice, rowsOf, type EndpointShort, type RawObject } from "@turnout/core/testing";
import { freePort, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { loopbackListener, LoopbackNodePorts, loopbackNodePorts } from "./loopback-node-ports.ts";

const HERE: EndpointShort = { ip: "10.1.1.1", node: "node1" };
const THERE: EndpointShort = { ip: "10.1.2.1", node: "node2" };
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function rowsFor(
  name: string,
  port: number,
  spec: RawObject = {},
  endpoints: readonly EndpointShort[] = [HERE, THERE],
): readonly ServicePort[] {
  const ports = [{ name: "http", port: 80, nodePort: port, protocol: "TCP" }];
  const service = rawService(name, { type: "NodePort", ports, ...spec });
  return [...rowsOf([rawNode("node1"), service, rawSlice(name, endpoints)]).values()];
}

it.each<[string, RawObject, readonly EndpointShort[], readonly string[] | undefined]>([
  ["the Cluster policy", {}, [HERE, THERE], ["10.1.1.1:8080", "10.1.2.1:8080"]],
  ["the Local policy: endpoints here, as in kube-proxy", { externalTrafficPolicy: "Local" }, [HERE, THERE], ["10.1.1.1:8080"]],
  ["the Local policy and none here: nothing listens", { externalTrafficPolicy: "Local" }, [THERE], undefined],
  ["no endpoint: nothing listens", {}, [], undefined],
  ["UDP", { ports: [{ name: "http", port: 80, nodePort: 30080, protocol: "UDP" }] }, [HERE], undefined],
  ["no node port", { type: "ClusterIP", ports: [{ name: "http", port: 80 }] }, [HERE], undefined],
])("R-38 %s", (_name, spec, endpoints, expected) => {
  const [row] = rowsFor("web", 30_080, spec, endpoints);
  expect(row === undefined ? undefined : loopbackListener(row)?.value.cluster).toEqual(expected);
});

interface Stage {
  readonly rows: Map<string, ServicePort>;
  readonly ports: LoopbackNodePorts;
  readonly clock: ToyClock;
  readonly log: ToyLog;
  readonly counted: { listeners: number; failures: number };
  change(set: readonly ServicePort[], gone?: readonly string[]): Promise<void>;
}

function makeStage(): Stage {
  const rows = new Map<string, ServicePort>();
  const [clock, log, counted] = [new ToyClock(), new ToyLog(), { listeners: -1, failures: 0 }];
  const ports = new LoopbackNodePorts({
    family: "IPv4",
    clock,
    log,
    rows: () => rows,
    onListeners: (count) => (counted.listeners = count),
    onFailure: () => counted.failures++,
  });
  closing.push(() => ports.close());
  const change = async (set: readonly ServicePort[], gone: readonly string[] = []): Promise<void> => {
    ports.note({ full: false, set, delete: gone });
    for (const key of gone) rows.delete(key);
    for (const row of set) rows.set(row.key, row);
    await ports.sync();
  };
  return { rows, ports, clock, log, counted, change };
}

async function serve(at: { host: string; port: number }, text: string): Promise<Server> {
  const server = createServer((socket) => void socket.on("error", () => undefined).end(text)).listen(at);
  await once(server, "listening");
  closing.push(async () => {
    server.close();
    await once(server, "close");
  });
  return server;
}

async function ask(port: number): Promise<string> {
  let text = "";
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("data", (data) => (text += String(data)));
  const code = await new Promise<string | undefined>((done) =>
    socket.on("error", (error: NodeJS.ErrnoException) => done(error.code)).on("end", () => socket.end(() => done(undefined))),
  );
  return code ?? text;
}

/** Endpoints are servers of this host, which a Service may not name: the rows are given them. */
function to(row: ServicePort | undefined, port: number): ServicePort {
  if (row === undefined) throw new Error("there is a row");
  return { ...row, endpoints: row.endpoints.map((endpoint) => ({ ...endpoint, ip: "127.0.0.1", port })) };
}

test("listeners follow the rows that change: they open, lead elsewhere, move with their node port, and close", async () => {
  const { change, counted } = makeStage();
  const [a, b] = [await serve({ host: "127.0.0.1", port: 0 }, "a"), await serve({ host: "127.0.0.1", port: 0 }, "b")];
  const [portA, portB] = [a, b].map((server) => (server.address() as AddressInfo).port) as [number, number];
  const [first, second] = [await freePort(), await freePort()];
  expect([await ask(first), counted.listeners]).toEqual(["ECONNREFUSED", 0]);
  const [row] = rowsFor("web", first, {}, [HERE]);
  await change([to(row, portA)]);
  expect([await ask(first), counted.listeners]).toEqual(["a", 1]);
  await change([to(row, portB)]);
  expect(await ask(first)).toBe("b");
  const [moved] = rowsFor("web", second, {}, [HERE]);
  const [other] = rowsFor("other", first, {}, [HERE]);
  await change([to(other, portA), to(moved, portB)]);
  expect([await ask(first), await ask(second), counted.listeners]).toEqual(["a", "b", 2]);
  await change([], [other?.key ?? ""]);
  expect([await ask(first), await ask(second), counted.listeners]).toEqual(["ECONNREFUSED", "b", 1]);
});

test("a port that another program has is logged once, counted, and taken when it is free, without a change; others are served", async () => {
  const { change, counted, clock, log } = makeStage();
  const endpoint = await serve({ host: "127.0.0.1", port: 0 }, "a");
  const held = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(held, "listening");
  const [taken, free] = [(held.address() as AddressInfo).port, await freePort()];
  const rows = [...rowsFor("web", taken, {}, [HERE]), ...rowsFor("other", free, {}, [HERE])];
  await change(rows.map((row) => to(row, (endpoint.address() as AddressInfo).port)));
  await clock.advance(5_000);
  expect([await ask(free), counted]).toEqual(["a", { listeners: 1, failures: 2 }]);
  expect(log.lines.filter((line) => line.includes("can't be opened on loopback"))).toHaveLength(1);
  held.close();
  await once(held, "close");
  await clock.advance(5_000);
  expect([await ask(taken), counted.listeners]).toEqual(["a", 2]);
});

test.each<[string, readonly string[] | undefined, Variants["nodePortsOnLoopback"], boolean, boolean]>([
  ["named, and left to the process", ["primary", "localhost"], "TCP", true, false],
  ["named, and the backend answers", ["localhost"], "IPv4", false, false],
  ["named, and nothing answers: logged", ["localhost"], "never", false, true],
  ["not named", ["all"], "TCP", false, false],
  ["not set", undefined, "TCP", false, false],
])("%s", (_name, nodePortAddresses, nodePortsOnLoopback, isServed, isLogged) => {
  const log = new ToyLog();
  const none = (): void => undefined;
  const options = { family: "IPv4", clock: new ToyClock(), log, rows: () => new Map(), onListeners: none, onFailure: none } as const;
  const ports = loopbackNodePorts({ ...DEFAULT_SETTINGS, nodePortAddresses }, { nodePortsOnLoopback }, options);
  if (ports !== undefined) closing.push(() => ports.close());
  expect([ports !== undefined, log.lines.length > 0]).toEqual([isServed, isLogged]);
});

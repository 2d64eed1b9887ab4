import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import type { ChangeSet, Feed } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as wire from "../../gen/turnout/node/v1/node.ts";
import { asksOf, ToyStateServer, type ToyStream } from "../../test-support/toy-state-server.ts";
import { eventually, flushPromises, toyChange, ToyClock, toyFull, ToyLog, toyNode, toyRow } from "../../test-support/toys.ts";
import { NodeLink, type NodeLinkOptions } from "./node-link.ts";

let stateServer: ToyStateServer;
let link: NodeLink;
let feed: Feed;
let clock: ToyClock;
let log: ToyLog;
const never = new AbortController().signal;
const FULL: ChangeSet = toyFull([toyRow("cart"), toyRow("till")]);

beforeEach(async () => {
  stateServer = await ToyStateServer.create();
  clock = new ToyClock();
  log = new ToyLog();
});

afterEach(async () => {
  await link.close();
  await stateServer.remove();
});

function open(options: Partial<NodeLinkOptions> = {}): void {
  const { settings } = toyNode();
  link = new NodeLink({ target: stateServer.target, nodeName: "node1", settings, version: "test 1", clock, log, random: () => 0.5, ...options });
  feed = link.feed("IPv4");
}

async function stream(index: number): Promise<ToyStream> {
  await eventually(`stream ${index}`, () => stateServer.streams[index] !== undefined);
  return stateServer.streams[index]!;
}

async function asked(index: number, times: number): Promise<ToyStream> {
  const one = await stream(index);
  await eventually(`ask ${times}`, () => asksOf(one).length === times);
  return one;
}

/** Let time pass until the node-state server has seen one more stream. */
async function retried(index: number): Promise<ToyStream> {
  await eventually("another try", async () => {
    await clock.advance(1_000);
    return stateServer.streams[index] !== undefined;
  });
  return stateServer.streams[index]!;
}

describe("a link", () => {
  test("says hello, and asks only when somebody waits", async () => {
    await stateServer.listen();
    open({ bindAddress: "192.0.2.1" });
    await flushPromises();
    expect(stateServer.streams).toHaveLength(0);
    const first = feed.next(never);
    const one = await asked(0, 1);
    const [hello] = one.requests;
    expect(hello?.request).toMatchObject({ $case: "hello", value: { nodeName: "node1", bindAddress: "192.0.2.1", version: "test 1" } });
    expect(asksOf(one)).toEqual([{ family: 1, instance: "", revision: 0 }]);
    one.answer(FULL);
    expect(await first).toEqual(FULL);
    await flushPromises();
    expect(asksOf(one)).toHaveLength(1);
    const second = feed.next(never);
    await asked(0, 2);
    expect(asksOf(one)[1]).toEqual({ family: 1, instance: "toy", revision: 1 });
    one.answer(toyChange({ delete: ["shop/till:http/TCP"] }));
    expect(await second).toMatchObject({ full: false, revision: 2 });
  });

  test("carries both families over one stream, each at its own pace", async () => {
    await stateServer.listen();
    open();
    const [four, six] = [feed.next(never), link.feed("IPv6").next(never)];
    const one = await asked(0, 2);
    one.answer(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
    expect((await six).family).toBe("IPv6");
    one.answer(FULL);
    expect((await four).family).toBe("IPv4");
    expect(stateServer.streams).toHaveLength(1);
  });

  test("hands nothing on that changes nothing, and notes the node's eligibility", async () => {
    await stateServer.listen();
    const heard: boolean[] = [];
    open({ onEligibility: ({ isEligible }) => heard.push(isEligible) });
    expect(link.eligibility.isEligible).toBe(false);
    const first = feed.next(never);
    const one = await asked(0, 1);
    one.answer(FULL, { isEligible: true, reason: "" });
    await first;
    expect(link.eligibility).toEqual({ isEligible: true, reason: "" });
    const second = feed.next(never);
    await asked(0, 2);
    one.answer(toyChange({}), { isEligible: false, reason: "the node is being deleted" });
    await asked(0, 3);
    expect(asksOf(one)[2]).toEqual({ family: 1, instance: "toy", revision: 2 });
    one.answer(toyChange({ revision: 3, set: [toyRow("new")] }));
    expect((await second).set.map(({ key }) => key)).toEqual(["shop/new:http/TCP"]);
    expect(heard).toEqual([true, false]);
  });

  test("keeps an answer that came after its asker had gone", async () => {
    await stateServer.listen();
    open();
    const stop = new AbortController();
    const first = feed.next(stop.signal);
    const one = await asked(0, 1);
    stop.abort();
    await expect(first).rejects.toThrow(/^\[canceled\]/);
    one.answer(FULL);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await feed.next(never)).toEqual(FULL);
    expect(asksOf(one)).toHaveLength(1);
  });

  test("asks for everything when told to", async () => {
    await stateServer.listen();
    open();
    const first = feed.next(never);
    (await asked(0, 1)).answer(FULL);
    await first;
    link.askFull("IPv4");
    void Promise.allSettled([feed.next(never)]);
    expect(asksOf(await asked(0, 2))[1]).toEqual({ family: 1, instance: "", revision: 0 });
  });

  test("passes over the difference that was asked for before it was told to want everything", async () => {
    await stateServer.listen();
    open();
    const first = feed.next(never);
    const one = await asked(0, 1);
    one.answer(FULL);
    await first;
    const second = feed.next(never);
    await asked(0, 2);
    link.askFull("IPv4");
    one.answer(toyChange({ set: [toyRow("new")] }), { isEligible: false, reason: "the node is being deleted" });
    expect(asksOf(await asked(0, 3))[2]).toEqual({ family: 1, instance: "", revision: 0 });
    expect(link.eligibility.isEligible).toBe(false);
    one.answer(toyFull([toyRow("new")]));
    expect(await second).toEqual(toyFull([toyRow("new")]));
    expect(stateServer.streams).toHaveLength(1);
    expect(log.lines.filter((line) => line.startsWith("warn"))).toEqual([]);
  });
});

describe("a link that is cut", () => {
  test("goes on from what was handed out, whatever was on its way", async () => {
    await stateServer.listen();
    open();
    const first = feed.next(never);
    const one = await asked(0, 1);
    one.answer(FULL);
    await first;
    const second = feed.next(never);
    await asked(0, 2);
    // The first of many parts, and then nothing.
    const [part] = [...FULL.set].map((row) => toyChange({ set: [row] }));
    one.sendBytes(Buffer.from(wire.WatchResponse.encode(firstPart(part!)).finish()));
    await flushPromises();
    stateServer.stop();
    await stateServer.listen();
    const two = await retried(1);
    await asked(1, 1);
    expect(asksOf(two)).toEqual([{ family: 1, instance: "toy", revision: 1 }]);
    two.answer(toyChange({ delete: ["shop/cart:http/TCP"] }));
    expect(await second).toMatchObject({ set: [], delete: ["shop/cart:http/TCP"] });
  });

  test("tries again with growing waits, says so once, and says when it is back", async () => {
    const health: string[] = [];
    open({ onHealth: (part, problem) => void health.push(`${part}: ${problem.slice(0, 11)}`) });
    void Promise.allSettled([feed.next(never)]);
    await eventually("a first try", () => log.lines.length > 0);
    const waits: number[] = [];
    for (let tries = 1; tries < 8; tries += 1) {
      const before = log.lines.length;
      let waitedMs = 0;
      while (log.lines.length === before) {
        await clock.advance(50);
        waitedMs += 50;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      waits.push(waitedMs);
    }
    expect(waits[6]).toBeGreaterThan(waits[2]! * 3);
    expect(log.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
    expect(log.lines[0]).toMatch(/^warn the node-state API is away, rules stay as they are; trying again error=\[feed_lost\]/);
    await stateServer.listen();
    await retried(0);
    await eventually("it is back", () => log.lines.some((line) => line.startsWith("info following the node-state API")));
    expect([health[0], health.at(-1)]).toEqual(["node-state API: [feed_lost]", "node-state API: "]);
  });
});

describe("a peer that is no node-state server, or a bad one", () => {
  /** What the link says of it. */
  async function complaint(): Promise<string> {
    void Promise.allSettled([feed.next(never)]);
    await eventually("a complaint", () => log.lines.some((line) => line.startsWith("warn")));
    return log.lines.find((line) => line.startsWith("warn")) ?? "";
  }

  const answers: readonly [name: string, act: (stream: ToyStream) => void, reason: RegExp][] = [
    ["garbage for a message", (one) => one.sendBytes(Buffer.from([0xff, 0xff, 0xff])), /is no message of the node-state API/],
    ["an empty message", (one) => one.sendBytes(Buffer.alloc(0)), /said a message that this version does not understand/],
    ["a second welcome", (one) => one.welcome(), /a second welcome/],
    ["an answer nobody asked for", (one) => one.answer(toyFull([], toyNode({ family: "IPv6" }))), /an answer nobody asked for/],
    ["a difference to nothing", (one) => one.answer(toyChange({ set: [toyRow("x")] })), /a difference to something else/],
    ["a state without its node", (one) => one.answer({ ...toyChange({}), full: true }), /a whole state without its node/],
    ["a row that can't be", (one) => one.answer(toyFull([toyRow("x", { cluster: [9] })])), /a pool of endpoints/],
    ["a refusal", (one) => one.fail(7, "not for you"), /\[permission_denied\].*not for you/],
    ["a plain end", (one) => one.end(), /ended the stream/],
  ];
  test.each(answers)("%s ends the stream and is told", async (_name, act, reason) => {
    await stateServer.listen();
    open();
    const said = complaint();
    const one = await asked(0, 1);
    act(one);
    expect(await said).toMatch(reason);
    // It was no reason to give up.
    stateServer.onStream = (next): void => next.welcome();
    const two = await retried(1);
    await asked(1, 1);
    two.answer(FULL);
    await eventually("back again", () => log.lines.filter((line) => line.startsWith("info")).length === 2);
  });

  test("a refusal is an error for who wants it so, and the next ask tries again", async () => {
    await stateServer.listen();
    stateServer.onStream = (one): void => one.fail(7, "not for you");
    open({ failOnRefusal: true });
    await expect(feed.next(never)).rejects.toThrow(/^\[permission_denied\].*not for you/);
    stateServer.onStream = (one): void => one.welcome();
    const next = feed.next(never);
    (await asked(1, 1)).answer(FULL);
    expect((await next).full).toBe(true);
  });

  test("nobody at all: where to look is said", async () => {
    open();
    expect(await complaint()).toMatch(
      /error=\[feed_lost\] no connection comes about \(connect ENOENT \S+node\.sock\): unix:\S+: is a node-state server \(turnout serve\) running there\?$/,
    );
  });

  test("another gRPC service", async () => {
    await stateServer.listen(false);
    open();
    expect(await complaint()).toMatch(/\[host_unsupported\].*is it a turnout\? this one speaks turnout\.node\.v1/);
  });

  test("someone who takes the connection and says nothing", async () => {
    await stateServer.listen();
    stateServer.onStream = (): void => undefined;
    open();
    const said = complaint();
    await stream(0);
    await clock.advance(10_000);
    expect(await said).toMatch(/\[timed_out\] nothing that speaks the node-state API answered within 10 s/);
  });

  test("someone who speaks something else altogether", async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.end("SSH-2.0-OpenSSH_9.2\r\n");
    }).listen(stateServer.path);
    await once(server, "listening");
    open();
    expect(await complaint()).toMatch(/\[feed_lost\]/);
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });

  test("a target that is none is refused at once", async () => {
    open();
    expect(() => new NodeLink({ target: "tcp://10.0.0.1:80", nodeName: "node1" })).toThrow(
      /^\[invalid_object\] over a network it takes mutual TLS/,
    );
  });
});

function firstPart(changes: ChangeSet): wire.WatchResponse {
  const { instance, revision, full } = changes;
  const value = {
    instance,
    revision,
    family: 1 as const,
    full,
    node: undefined,
    set: [],
    delete: [],
    triggeredMs: [],
    eligibility: undefined,
    more: true,
    packed: [],
  };
  return { response: { $case: "changeSet", value } };
}

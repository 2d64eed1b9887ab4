import { describe, expect, it } from "vitest";
import type { Flow } from "./testing/fake-sockets.ts";
import { AT, createFrontStage, from, listenerOf, stageOf } from "./test-support/fronts.ts";
import type { FrontStage } from "./test-support/fronts.ts";

const A = "10.1.1.1:8080";
const B = "10.1.1.2:8080";
const UDP = { transport: "UDP", row: "shop/dns:dns/UDP" } as const;

function send({ sockets }: FrontStage, number: number): Flow | string | undefined {
  return sockets.datagram(from(number), AT, Uint8Array.of(number));
}

function endpointOf(flow: Flow | string | undefined): string | undefined {
  return typeof flow === "object" ? flow.endpoint : flow;
}

describe("UDP clients", () => {
  it("have a socket each, and answers come back to them", async () => {
    const stage = await stageOf([A, B], { balance: "round-robin" }, UDP);
    const [one, two] = [send(stage, 1), send(stage, 2)] as [Flow, Flow];
    expect([one.endpoint, two.endpoint]).toEqual([A, B]);
    expect(send(stage, 1)).toBe(one);
    expect(two.answer(Uint8Array.of(9))).toEqual(from(2));
    expect(one.answer(Uint8Array.of(9))).toEqual(from(1));
    expect(one.sent.map(([first]) => first)).toEqual([1, 1]);
  });

  it("that are silent are forgotten, those that hear something aren't", async () => {
    const stage = await stageOf([A], { "udp-idle-timeout": 60 }, UDP);
    const silent = send(stage, 1) as Flow;
    const heard = send(stage, 2) as Flow;
    await stage.clock.advance(50_000);
    heard.answer(Uint8Array.of(1));
    await stage.clock.advance(30_000);
    expect([stage.sockets.has(silent), stage.sockets.has(heard)]).toEqual([false, true]);
    await stage.clock.advance(80_000);
    expect([stage.sockets.flows.length, stage.traffic.shared.sessions.size]).toEqual([0, 0]);
  });

  it("above the limit take the place of the one that was silent longest", async () => {
    const stage = await stageOf([A], { "max-udp-sessions": 2 }, UDP);
    const first = send(stage, 1) as Flow;
    const second = send(stage, 2) as Flow;
    send(stage, 1);
    const third = send(stage, 3) as Flow;
    expect([first, second, third].map((flow) => stage.sockets.has(flow))).toEqual([true, false, true]);
    expect(stage.traffic.shared.sessions.size).toBe(2);
  });

  it("of a flood of one Service cost no other a session, and give back what another wants", async () => {
    const stage = await stageOf([A], { "max-udp-sessions": 10 }, UDP);
    const at = { ip: "127.0.0.1", port: 53 };
    const asked = { address: at.ip, port: at.port };
    await stage.fronts.put(listenerOf([B], { transport: "UDP", row: "flood/dns:dns/UDP", ...at, asked }));
    const own = [1, 2].map((number) => send(stage, number) as Flow);
    for (let number = 0; number < 100; number++) stage.sockets.datagram(from(number), at);
    expect(own.map((flow) => stage.sockets.has(flow))).toEqual([true, true]);
    for (let number = 3; number < 6; number++) own.push(send(stage, number) as Flow);
    for (let number = 100; number < 200; number++) stage.sockets.datagram(from(number), at);
    expect([own.every((flow) => stage.sockets.has(flow)), stage.traffic.shared.sessions.size]).toEqual([true, 10]);
  });

  it("are not sent to a socket of this proxy: a datagram would go round for ever", async () => {
    const stage = await stageOf(["10.96.0.10:80", A], {}, UDP);
    expect(endpointOf(send(stage, 1))).toBe(A);
    await stage.fronts.put(listenerOf(["10.96.0.10:80"], UDP));
    expect(send(stage, 2)).toBe("silence");
  });

  it("whose endpoint refuses find another with their next datagram", async () => {
    const stage = await stageOf([A, B], { balance: "round-robin" }, UDP);
    (send(stage, 1) as Flow).fail();
    expect(endpointOf(send(stage, 1))).toBe(B);
  });

  it("are ended where filters name them, and only there", async () => {
    const stage = await stageOf([A, B], { balance: "round-robin" }, UDP);
    const [one, two] = [send(stage, 1), send(stage, 2)] as [Flow, Flow];
    const filter = { protocol: "UDP", address: "10.96.0.10", port: 80 } as const;
    expect(stage.fronts.forget([{ ...filter, port: 81, keep: [] }])).toBe(0);
    expect(stage.fronts.forget([{ ...filter, address: "", keep: [] }])).toBe(0);
    expect(stage.fronts.forget([{ ...filter, keep: [], only: ["10.1.1.9:8080"] }])).toBe(0);
    expect(stage.fronts.forget([{ ...filter, keep: [B] }])).toBe(1);
    expect([endpointOf(send(stage, 1)), endpointOf(send(stage, 2)), two.sent.length]).toEqual([A, B, 2]);
    expect([one.sent.length, stage.fronts.sessions.size]).toEqual([1, 2]);
  });

  it("that are parted from their endpoint still hear what they asked it before", async () => {
    const stage = await stageOf([A, B], { balance: "round-robin", "udp-idle-timeout": 4 }, UDP);
    const one = send(stage, 1) as Flow;
    expect(stage.fronts.forget([{ protocol: "UDP", address: "10.96.0.10", port: 80, keep: [B] }])).toBe(1);
    const next = send(stage, 1) as Flow;
    expect([next.endpoint, one.answer(Uint8Array.of(9))]).toEqual([B, from(1)]);
    expect(one.sent).toHaveLength(1);
    await stage.clock.advance(2_500);
    expect([stage.sockets.has(one), stage.sockets.has(next), stage.traffic.shared.sessions.size]).toEqual([false, true, 1]);
  });

  it("that are parted don't take their client's next session with them, and make room before others", async () => {
    const stage = await stageOf([A, B], { balance: "round-robin", "max-udp-sessions": 2 }, UDP);
    const parted = send(stage, 1) as Flow;
    const filter = { protocol: "UDP", address: "10.96.0.10", port: 80, keep: [B] } as const;
    stage.fronts.forget([filter]);
    const next = send(stage, 1) as Flow;
    parted.fail();
    expect([stage.sockets.has(next), send(stage, 1)]).toEqual([true, next]);
    const other = send(stage, 2) as Flow;
    stage.fronts.forget([filter]);
    const third = send(stage, 3) as Flow;
    expect([next, other, third].map((flow) => stage.sockets.has(flow))).toEqual([true, false, true]);
    await stage.fronts.remove(listenerOf([A, B], UDP));
    expect([stage.sockets.flows, stage.traffic.shared.sessions.size]).toEqual([[], 0]);
  });

  it("hear nothing where they are dropped, and are refused by the host where nobody serves, the port held", async () => {
    const stage = await stageOf([], {}, { ...UDP, rules: [{ from: "anyone", to: "drop" }] });
    expect(send(stage, 1)).toBe("silence");
    await stage.fronts.put(listenerOf([A], UDP));
    const flow = send(stage, 1) as Flow;
    await stage.fronts.put(listenerOf([], UDP));
    expect([send(stage, 1), stage.sockets.open]).toEqual(["refused", ["UDP 10.96.0.10:80 refusing"]]);
    expect(stage.sockets.has(flow)).toBe(false);
    await stage.fronts.put(listenerOf([A], UDP));
    expect(endpointOf(send(stage, 1))).toBe(A);
  });

  it("end with their listener", async () => {
    const stage = createFrontStage();
    const object = listenerOf([A], UDP);
    await stage.fronts.put(object);
    send(stage, 1);
    await stage.fronts.remove(object);
    expect([stage.sockets.flows.length, stage.sockets.open, stage.fronts.isDrained(object.key)]).toEqual([0, [], true]);
  });
});

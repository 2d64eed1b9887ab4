import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import type { Answer, Cause, Survey } from "@turnout/core";
import { REJECT_COMMANDS } from "../causes/reject-commands.ts";
import { afterEach, describe, expect, it } from "vitest";
import { probeEndpoints, withProbe } from "./probe.ts";

const open: Server[] = [];

afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

/** A port that accepts whoever comes, or (once it is closed) nobody. */
async function port(isOpen: boolean): Promise<number> {
  const server = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: number } = server.address() as AddressInfo;
  if (isOpen) open.push(server);
  else await new Promise((resolve) => server.close(resolve));
  return number;
}

function probe(...ports: readonly number[]): Promise<Survey> {
  const endpoints = ports.map((number) => ({ ip: "127.0.0.1", port: number, nodeName: undefined, isLocal: true, masquerade: false }));
  return probeEndpoints({ packet: { protocol: "TCP" }, fate: { is: "forward", endpoints }, unjudged: [] } as unknown as Answer);
}

const REMOTE = { ip: "10.1.2.5", port: 8080, nodeName: "n2", isLocal: false, masquerade: false };
const GUESS = { id: "unanswered", isSure: false, says: "a connection was sent to 10.1.2.5:8080 a moment ago", fix: "ask it" } as const;
const GUESSED = {
  packet: { family: "IPv4", protocol: "TCP", source: "10.1.1.6", destination: "10.96.0.10", port: 80, device: "veth1" },
  steps: [],
  fate: { is: "forward", endpoints: [REMOTE] },
  causes: [GUESS],
  unseen: [],
  unjudged: [],
  isProbed: false,
} as unknown as Answer;

const PASSING: Answer = { ...GUESSED, packet: { ...GUESSED.packet, destination: "127.0.0.1" }, fate: { is: "pass" }, causes: [] };

describe("endpoints that are connected to", () => {
  it("accept, which is not to answer", async () => {
    const number = await port(true);
    const { steps, causes, isProbed } = await probe(number);
    expect(steps[0]?.says).toBe(`asked from this host: 127.0.0.1:${number} accepts connections (nothing was sent)`);
    expect([causes, isProbed]).toEqual([[], true]);
  });

  it("refuse: the only one", async () => {
    const number = await port(false);
    const { causes } = await probe(number);
    expect(causes).toMatchObject([
      {
        id: "unanswered",
        says: `the only endpoint, 127.0.0.1:${number}, refuses connections: nothing listens there on that port, or a rule rejects them`,
        show: [`curl -m 1 http://127.0.0.1:${number}/`, ...REJECT_COMMANDS],
      },
    ]);
  });

  it("refuse: one of two, and both", async () => {
    const [good, bad, worse] = await Promise.all([port(true), port(false), port(false)]);
    const [some] = (await probe(good, bad)).causes;
    expect(some?.says).toMatch(/^1 of 2 endpoints \(127\.0\.0\.1:\d+\) refuses connections/);
    expect(some?.fix).toMatch(/^others answer, so it is hardly targetPort/);
    const [all] = (await probe(bad, worse)).causes;
    expect(all?.says).toMatch(/^2 of 2 endpoints \(.*, .*\) refuse connections/);
    expect(all?.fix).toContain("set targetPort to it");
  });

  it("refuse, and a rule that can't be judged rejects: that one comes first", async () => {
    const unjudged = [{ says: "it may reject", rule: "-A OUTPUT -m statistic -j REJECT", show: "iptables -S OUTPUT" }];
    const [refused] = (await probeEndpoints({ ...PASSING, packet: { ...PASSING.packet, port: await port(false) }, unjudged })).causes;
    expect(refused?.show?.[0]).toBe("iptables -S OUTPUT");
    expect(refused?.fix).toMatch(/^first see the rule that can't be judged \(-A OUTPUT/);
  });

  it("that are Services' addresses are not asked: another Service would answer", async () => {
    const number = await port(true);
    const endpoint = { ip: "127.0.0.1", port: number, nodeName: undefined, isLocal: false, masquerade: false };
    const fate = { is: "forward", endpoints: [endpoint, { ...endpoint, ip: "10.96.0.9", isServiceAddress: true }] } as const;
    const { steps, notes } = await probeEndpoints({ ...PASSING, fate });
    expect(steps[0]?.says).toBe(`asked from this host: 127.0.0.1:${number} accepts connections (nothing was sent)`);
    expect(notes).toEqual([`10.96.0.9:${number} is a Service's address, and was not probed: another Service would answer`]);
    expect((await probeEndpoints({ ...PASSING, fate: { ...fate, endpoints: fate.endpoints.slice(1) } })).isProbed).toBeUndefined();
  });

  it("are the destination itself where the packet is no Service's, and none where it is refused", async () => {
    const number = await port(true);
    const { steps, causes } = await probeEndpoints({ ...PASSING, packet: { ...PASSING.packet, port: number } });
    expect([steps[0]?.says, causes]).toEqual([`asked from this host: 127.0.0.1:${number} accepts connections (nothing was sent)`, []]);
    const refused = await probeEndpoints({ ...PASSING, fate: { is: "reject" } });
    expect(refused).toEqual({ steps: [], causes: [], unseen: [], notes: ["nothing was probed: the packet goes to no endpoint"] });
  });
});

describe("a guess that an endpoint is silent", () => {
  it("is about the client's way back, where this host is answered", () => {
    const { causes } = withProbe(GUESSED, { steps: [], causes: [], unseen: [], isProbed: true });
    expect(causes).toMatchObject([{ id: "unanswered", isSure: false }]);
    expect(causes[0]?.says).toContain("This host is answered, 10.1.1.6 is not: n2 lacks the way back to 10.1.1.6, or a policy");
  });

  it("stays where it is not", () => {
    const silent: Cause = { id: "unanswered", says: "the only endpoint does not answer this host", fix: "see why" };
    expect(withProbe(GUESSED, { steps: [], causes: [silent], unseen: [], isProbed: true }).causes).toEqual([silent, GUESS]);
  });
});

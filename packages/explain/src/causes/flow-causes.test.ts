import type { AskedPacket, Fate } from "@turnout/core";
import { describe, expect, it } from "vitest";
import type { Flow } from "@turnout/host";
import { flowCauses, readFlowTimeouts } from "./flow-causes.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: "203.0.113.7", destination: "10.96.0.1", port: 80, device: "eth0" };
const FATE: Fate = {
  is: "forward",
  endpoints: ["10.1.1.5", "10.1.1.6"].map((ip) => ({ ip, port: 8080, nodeName: "n1", isLocal: true, masquerade: false })),
};
const SECONDS: Readonly<Record<string, string>> = { syn_sent: "120\n", syn_recv: "60\n", established: "432000\n", time_wait: "120\n" };
const [SYN_SENT, SYN_RECV, ESTABLISHED, TIME_WAIT] = [1, 2, 3, 7];

/** A connection that was last heard of so many seconds ago. */
function flow(tcpState: number, age: number, answerer = "10.1.1.5"): Flow {
  const kept = { [SYN_SENT]: 120, [SYN_RECV]: 60, [ESTABLISHED]: 432_000, [TIME_WAIT]: 120 }[tcpState] ?? 0;
  const isAnswered = tcpState !== SYN_SENT;
  return { source: PACKET.source, sourcePort: 40_000 + age, answerer, answererPort: 8080, isAnswered, tcpState, secondsLeft: kept - age };
}

async function said(...flows: readonly Flow[]): Promise<string | undefined> {
  const timeouts = await readFlowTimeouts((path) => Promise.resolve(SECONDS[path.replace(/^.*_tcp_timeout_/, "")]));
  return flowCauses({ packet: PACKET, fate: FATE }, flows, timeouts)[0]?.says;
}

describe("a connection without an answer", () => {
  it("is told with its age and port, the latest one of several", async () => {
    expect(await said(flow(SYN_SENT, 30), flow(SYN_SENT, 8))).toBe(
      "an attempt of this client 8 s ago (port 40008) to 10.1.1.5:8080 got no answer: it was lost on this node or behind it, or the answer was. If something was mended since, that is over: try again",
    );
  });

  it("is not told where the endpoint has answered this client since, or nobody can say when", async () => {
    expect(await said(flow(SYN_SENT, 30), flow(TIME_WAIT, 5))).toBeUndefined();
    expect(await said(flow(SYN_SENT, 30), flow(ESTABLISHED, 5))).toBeUndefined();
    const { tcpState: _, ...unknown } = flow(SYN_SENT, 3);
    expect(await said(unknown, flow(TIME_WAIT, 5))).toBeUndefined();
  });

  it("is told where the answer was before, from another endpoint, or didn't arrive", async () => {
    const text =
      "an attempt of this client 5 s ago (port 40005) to 10.1.1.5:8080 got no answer: it was lost on this node or behind it, or the answer was. If something was mended since, that is over: try again";
    expect(await said(flow(SYN_SENT, 5), flow(TIME_WAIT, 40))).toBe(text);
    expect(await said(flow(SYN_SENT, 5), flow(TIME_WAIT, 1, "10.1.1.6"))).toBe(text);
    expect(await said(flow(SYN_SENT, 5), flow(SYN_RECV, 1))).toBe(text);
  });
});

import { describe, expect, it } from "vitest";
import { Conntrack } from "./conntrack.ts";
import type { Tuple } from "./conntrack.ts";

const from = (source: string, sourcePort = 1000): Tuple => ({ protocol: "TCP", source, sourcePort, destination: "service", port: 80 });

describe("conntrack in memory", () => {
  it("finds a flow in both directions until its time is over, and no other one", () => {
    let nowMs = 0;
    const conntrack = new Conntrack(() => nowMs);
    const flow = conntrack.begin(from("a"));
    conntrack.setDestination(flow, "endpoint", 8080);
    conntrack.setSource(flow, "node");
    expect(conntrack.find(from("a"))).toBeUndefined();
    expect(conntrack.insert(flow, 100)).toBe(true);
    const answer: Tuple = { protocol: "TCP", source: "endpoint", sourcePort: 8080, destination: "node", port: 1000 };
    expect([conntrack.find(from("a")), conntrack.find(answer), conntrack.find(from("b"))]).toEqual([flow, flow, undefined]);
    expect(conntrack.insert(conntrack.begin(from("a")), 100)).toBe(false);
    nowMs = 100;
    expect([conntrack.find(from("a")), conntrack.find(answer)]).toEqual([undefined, undefined]);
  });

  it("gives a flow another source port where its own is another flow's already", () => {
    const conntrack = new Conntrack(() => 0);
    const ports = ["a", "b"].map((client) => {
      const flow = conntrack.begin(from(client));
      conntrack.setDestination(flow, "endpoint", 8080);
      conntrack.setSource(flow, "node");
      conntrack.insert(flow, 100);
      return flow.reply.port;
    });
    expect(ports).toEqual([1000, 1001]);
  });
});

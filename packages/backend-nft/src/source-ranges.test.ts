import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ServiceFixture } from "@turnout/core/testing";
import { createFakeHost } from "./testing/index.ts";
import { openProxy } from "./test-support/states.ts";

/** Found by trying: the first 32 bits of their digests are the same. */
const ALIKE = ["10.0.215.209/32", "10.1.103.106/32"] as const;

function balanced(name: string, number: number, range: string): ServiceFixture {
  const spec = { type: "LoadBalancer", loadBalancerSourceRanges: [range] };
  return { name, number, remote: 1, spec, loadBalancerIPs: [`198.51.100.${number}`] };
}

describe("source ranges", () => {
  it("are each Service's own, although a tenant found some whose digests begin alike", async () => {
    const [digest, other] = ALIKE.map((range) => createHash("sha256").update(range).digest("hex").slice(0, 8));
    expect(digest).toBe(other);
    const host = createFakeHost();
    const proxy = await openProxy(host.world, "IPv4");
    await proxy.sync([balanced("bank", 1, ALIKE[0]), balanced("thief", 2, ALIKE[1])]);
    expect([...proxy.ledger.defects]).toEqual([]);
    const asks = (source: string, number: number): string => {
      const packet = { family: "IPv4", protocol: "TCP", source, destination: `198.51.100.${number}`, port: 80, link: "uplink" } as const;
      return host.trace(packet, () => 0.5).is;
    };
    const [bank, thief] = ["10.0.215.209", "10.1.103.106"];
    expect([asks(bank, 1), asks(thief, 1), asks(bank, 2), asks(thief, 2)]).toEqual(["forward", "drop", "drop", "forward"]);
  });
});

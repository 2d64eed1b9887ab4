import type { HostEvent } from "@turnout/core/backend";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { IpvsFacts } from "./options.ts";
import { explainCommit } from "./signs.ts";
import { cart, Proxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IpvsFakeHost } from "./testing/index.ts";

const WEB = { family: "IPv4", protocol: "TCP", address: "10.96.0.1", port: 80 } as const;

let host: IpvsFakeHost;
let proxy: Proxy;
let stop: AbortController;
let drifts: string[];

beforeEach(async () => {
  host = createFakeHost();
  proxy = await Proxy.open(host.world);
  await proxy.sync(cart(["10.1.1.1", "10.1.1.2"]));
  stop = new AbortController();
  drifts = [];
  void follow(proxy.backend.watch?.(stop.signal));
  await host.advance(1_000);
});
afterEach(() => stop.abort());

async function follow(events: AsyncIterable<HostEvent<IpvsFacts>> | undefined): Promise<void> {
  for await (const event of events ?? []) if (event.kind === "drift") drifts.push(event.what);
}

describe("watching the host", () => {
  it("tells within tenths of a second that a foreign hand removed a server, and not that we did", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    await host.advance(1_000);
    expect(drifts).toEqual([]);
    const before = host.ipvs.virtualServers().length;
    await host.ipvs.change([{ verb: "delete-service", service: WEB }], stop.signal);
    await host.advance(300);
    const servers = `virtual servers (${before - 1} instead of ${before}), real servers (1 instead of 2)`;
    expect(drifts).toEqual([`somebody changed ${servers}; the kernel does not tell who`]);
  });

  it.each([
    ["a chain of ours", "KUBE-SERVICES", true],
    ["the kernel's chain that leads there", "PREROUTING", true],
    ["a CNI plugin's", "CNI-HOSTPORT-DNAT", false],
  ])("a commit to %s is a suspicion or not", (_name, chain, isSuspicious) => {
    const commit = (table: string): string | undefined =>
      explainCommit(
        {
          kind: "commit",
          generation: 2,
          pid: 7,
          process: "iptables-nft",
          tables: [table],
          changes: () => [{ table, verb: "deleted", kind: "rule", name: chain, keys: [] }],
        },
        "IPv4",
      );
    expect(commit("ip nat")).toBe(isSuspicious ? "iptables-nft (pid 7) changed table ip nat" : undefined);
    expect(commit("ip6 nat")).toBeUndefined();
  });
});

import type { HostEvent, LeftObjects } from "@turnout/core/backend";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rawService, rawSlice } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { DEVICE } from "../names.ts";
import type { IpvsFacts } from "../options.ts";
import { tablesTouched } from "./fingerprints.ts";
import { cart, openProxy } from "../test-support/proxy.ts";
import type { IpvsProxy } from "../test-support/proxy.ts";
import { createFakeHost } from "../testing/index.ts";
import type { IpvsFakeHost } from "../testing/index.ts";

const WEB = { family: "IPv4", protocol: "TCP", address: "10.96.0.1", port: 80 } as const;

const NAME = "TCP 10.96.0.1:80";

let host: IpvsFakeHost;
let proxy: IpvsProxy;
let stop: AbortController;
let drifts: string[];
let lefts: LeftObjects[];

beforeEach(async () => {
  host = createFakeHost();
  proxy = await openProxy(host.world);
  await proxy.sync(cart(["10.1.1.1", "10.1.1.2"]));
  stop = new AbortController();
  [drifts, lefts] = [[], []];
  void follow(proxy.backend.watch?.(stop.signal));
  await host.advance(1_000);
});
afterEach(() => stop.abort());

async function follow(events: AsyncIterable<HostEvent<IpvsFacts>> | undefined): Promise<void> {
  for await (const event of events ?? []) {
    if (event.kind !== "drift") continue;
    drifts.push(event.what);
    if (event.left !== undefined) lefts.push(event.left);
  }
}

/** What is believed of what was seen, once it is mended and everything is as it was. */
async function repaired(): Promise<readonly string[]> {
  const own = await proxy.backend.observe(stop.signal);
  const trusted = lefts.splice(0).flatMap((left) => proxy.ledger.trust(left));
  expect(proxy.ledger.differencesTo(own)).toEqual([]);
  await proxy.sync(cart(["10.1.1.1", "10.1.1.2"]));
  await host.advance(1_000);
  return trusted.map(({ id, fate }) => `${fate} ${id}`);
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
    expect(drifts).toEqual([`somebody changed ${servers}; the kernel does not tell by whom`]);
  });

  it.each([
    {
      what: "a virtual server that went",
      writer: () => host.ipvs.run({ verb: "delete-service", service: WEB }),
      fates: [`removed service ${NAME}`, `removed server ${NAME} 10.1.1.1:8080`, `removed server ${NAME} 10.1.1.2:8080`],
    },
    {
      what: "another scheduler",
      writer: () =>
        host.ipvs.run({ verb: "edit-service", service: { ...WEB, scheduler: "lc", flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 } }),
      fates: [`changed service ${NAME}`],
    },
    {
      what: "a weight",
      writer: () => host.ipvs.run({ verb: "edit-server", service: WEB, server: { address: "10.1.1.1", port: 8080, weight: 9 } }),
      fates: [`changed server ${NAME} 10.1.1.1:8080`],
    },
    {
      what: "a real server too many",
      writer: () => host.ipvs.run({ verb: "add-server", service: WEB, server: { address: "10.9.9.9", port: 80, weight: 1 } }),
      fates: [`added server ${NAME} 10.9.9.9:80`],
    },
    {
      what: "a set that was emptied",
      writer: () => host.ipset.run("flush KUBE-CLUSTER-IP"),
      fates: ["removed entry KUBE-CLUSTER-IP 10.96.0.1,tcp:80"],
    },
  ])("sees of $what just that, and it is mended without comparing everything", async ({ writer, fates }) => {
    writer();
    await host.advance(1_000);
    expect((await repaired()).toSorted()).toEqual(fates.toSorted());
    expect(drifts).toHaveLength(1);
  });

  it.each(["right after a write", "during a write"])(
    "sees in IPv6 that all was removed %s, what was just written included",
    async (when) => {
      const v6 = (ip: string, endpoints: readonly string[]): readonly RawObject[] => {
        const name = `v6-${ip.slice(-1)}`;
        const slice = rawSlice(
          name,
          endpoints.map((one) => ({ ip: one, node: "node1" })),
          { addressType: "IPv6" },
        );
        return [rawService(name, { clusterIP: ip }), slice];
      };
      const six = await openProxy(host.world, {}, "IPv6");
      await six.sync([...v6("fd00:96::1", ["fd00:1:1::1"]), ...v6("fd00:96::2", ["fd00:1:1::1"])]);
      void follow(six.backend.watch?.(stop.signal));
      await host.advance(1_000);
      lefts.length = 0;
      const changed = [...v6("fd00:96::1", ["fd00:1:1::1", "fd00:1:1::2"]), ...v6("fd00:96::2", ["fd00:1:1::1", "fd00:1:1::2"])];
      const gone = ["fd00:96::1", "fd00:96::2"].map(
        (address) => ({ verb: "delete-service", service: { ...WEB, family: "IPv6", address } }) as const,
      );
      const change = host.ipvs.change.bind(host.ipvs);
      const write = vi.spyOn(host.ipvs, "change").mockImplementationOnce(async (...written) => {
        const outcome = await change(...written);
        if (when === "during a write") host.ipvs.run(...gone);
        return outcome;
      });
      await six.sync(changed);
      expect(write).toHaveBeenCalledOnce();
      if (when === "right after a write") host.ipvs.run(...gone);
      await host.advance(1_000);
      for (const left of lefts) six.ledger.trust(left);
      expect(await six.sync(changed)).toBe(6);
      expect(six.ledger.differencesTo(await six.backend.observe(stop.signal))).toEqual([]);
    },
  );

  it("sees at once that an address of ours was removed: the kernel tells of addresses", async () => {
    // The last way of tampering, and the last address.
    expect(host.tamper(() => 0.99)).toBe(`took 10.96.0.1 off ${DEVICE}`);
    await host.advance(0);
    expect(drifts).toEqual([`somebody changed addresses on ${DEVICE} (0 instead of 1); the kernel does not tell by whom`]);
  });

  it("takes virtual servers of others for nobody's of ours, whichever part they are in", async () => {
    const others = Array.from({ length: 600 }, (_, index) => ({ ...WEB, address: `192.0.2.${index % 200}`, port: 1_000 + index }));
    const settings = { scheduler: "rr", flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 };
    host.ipvs.run(...others.map((service) => ({ verb: "add-service", service: { ...service, ...settings } }) as const));
    await host.advance(1_000);
    expect(lefts).not.toEqual([]);
    expect(await repaired()).toEqual([]);
  });

  it.each([
    ["a chain of ours", "KUBE-SERVICES", true],
    ["the kernel's chain that leads there", "PREROUTING", true],
    ["a CNI plugin's", "CNI-HOSTPORT-DNAT", false],
  ])("a commit to %s is a suspicion or not", (_name, chain, isSuspicious) => {
    const touched = (table: string): readonly string[] => [
      ...tablesTouched(
        {
          kind: "commit",
          generation: 2,
          pid: 7,
          process: "iptables-nft",
          tables: [table],
          changes: () => [{ table, verb: "deleted", kind: "rule", name: chain, keys: [] }],
        },
        "IPv4",
      ),
    ];
    expect(touched("ip nat")).toEqual(isSuspicious ? ["nat"] : []);
    expect(touched("ip6 nat")).toEqual([]);
  });
});

import type { Dataplane, IPFamily } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nftModule } from "./module.ts";
import type { NftObject } from "./objects.ts";
import type { NftFacts } from "./options.ts";
import type { Transaction } from "./plan.ts";
import { proxyOf, stateOf } from "./test-support/states.ts";
import type { NftProxy } from "./test-support/states.ts";

const { signal } = new AbortController();

const balanced = (number: number, spec: object): Pick<ServiceFixture, "loadBalancerIPs" | "spec"> => ({
  loadBalancerIPs: [`198.51.100.${number}`, `fd00:198::${number}`],
  spec: { type: "LoadBalancer", ...spec },
});
/** All of UDP: a client is done when it has sent, whatever becomes of it. */
const FIXTURES: readonly ServiceFixture[] = [
  { name: "web", number: 1, remote: 2 },
  { name: "empty", number: 2 },
  { name: "elsewhere", number: 3, remote: 1, ...balanced(3, { externalTrafficPolicy: "Local", nodePort: 30_003 }) },
  {
    name: "ranged",
    number: 4,
    remote: 1,
    ...balanced(4, { loadBalancerSourceRanges: ["203.0.113.0/24", "fd00:203::/64"], nodePort: 30_004 }),
  },
  { name: "port", number: 5, remote: 1, spec: { type: "NodePort", nodePort: 30_005 } },
  { name: "sticky", number: 6, remote: 2, spec: { sessionAffinity: "ClientIP" } },
  { name: "echo", number: 7, remote: 1 },
  { name: "self", number: 8, remote: 1 },
].map((fixture) => ({ protocol: "UDP", ...fixture }));

const PLACES = {
  IPv4: {
    nft: "ip",
    datagram: 30,
    node: "172.18.0.1",
    client: "172.18.0.9",
    bits: "24",
    all: "0.0.0.0/0",
    cluster: "10.96.0.",
    balanced: "198.51.100.",
  },
  IPv6: {
    nft: "ip6",
    datagram: 50,
    node: "fd00:18::1",
    client: "fd00:18::9",
    bits: "64",
    all: "::/0",
    cluster: "fd00:96::",
    balanced: "fd00:198::",
  },
} as const;

describe("counting on a real kernel", needs("root", "netns", "nft>=1.0.1"), () => {
  let node: TestNamespace;
  let client: TestNamespace;
  const dataplanes: Dataplane<NftFacts, NftObject, Transaction>[] = [];

  const run = (where: TestNamespace, ...[file = "", ...args]: readonly string[]): Promise<string> => where.run(file, args);

  beforeAll(async () => {
    [node, client] = [createTestNamespace("tcount"), createTestNamespace("tcount-client")];
    await run(node, "ip", "link", "add", "up0", "type", "veth", "peer", "name", "up0", "netns", client.name);
    for (const [where, mine] of [
      [node, "node"],
      [client, "client"],
    ] as const) {
      await run(where, "ip", "link", "set", "up0", "up");
      for (const { bits, [mine]: address } of Object.values(PLACES))
        await run(where, "ip", "address", "add", `${address}/${bits}`, "dev", "up0", ...(address.includes(":") ? ["nodad"] : []));
    }
    for (const { all, node: gateway } of Object.values(PLACES)) await run(client, "ip", "route", "add", all, "via", gateway);
  });
  afterAll(async () => {
    for (const dataplane of dataplanes) await dataplane.close(signal);
    node?.remove();
    client?.remove();
  });

  async function open(family: IPFamily, options: Readonly<Record<string, boolean>> = {}): Promise<NftProxy> {
    const dataplane = await nftModule.open(nftModule.parseOptions(options), node.world, signal);
    dataplanes.push(dataplane);
    return proxyOf(dataplane.family(family), family);
  }

  /** A process that brings a state in force; resolves to how many objects had to change. */
  async function sync(proxy: NftProxy, fixtures: readonly ServiceFixture[] = FIXTURES): Promise<number> {
    await proxy.adopt();
    return await proxy.sync(fixtures);
  }

  async function send(...targets: readonly (readonly [address: string, port: number])[]): Promise<void> {
    await run(client, "bash", "-c", targets.map(([address, port]) => `echo x >/dev/udp/${address}/${port}; true`).join("\n"));
  }

  /** A process of the node asks an endpoint that answers: behind the client's device, or on the node itself. */
  async function echo(family: IPFamily, name: "echo" | "self", address: string, port: number): Promise<void> {
    const endpoint = stateOf(family)(FIXTURES).rows.get(`shop/${name}:main/UDP`)?.endpoints[0];
    if (endpoint === undefined) throw new Error(`${name} has no endpoint`);
    const where = name === "self" ? node : client;
    await run(node, "ip", "link", "set", "lo", "up");
    await run(where, "ip", "address", "add", endpoint.ip, "dev", "lo");
    // To the Service's address, too: without a route the node would send nothing.
    for (const to of where === node ? [address] : [endpoint.ip, address])
      await run(node, "ip", "route", "add", to, "via", PLACES[family].client);
    const type = family === "IPv4" ? "udp4" : "udp6";
    const answers = `const s = require("dgram").createSocket("${type}"); s.on("message", (text, { port, address }) => s.send(text, port, address, () => s.close())).bind(${endpoint.port}, "${endpoint.ip}")`;
    const asks = `const s = require("dgram").createSocket("${type}"); s.on("message", () => process.exit(0)); setInterval(() => undefined, 1e4); s.send("x\\n", ${port}, "${address}")`;
    const answering = run(where, process.execPath, "-e", answers);
    await expect.poll(() => run(where, "ss", "-Hlun")).toContain(endpoint.ip);
    await run(node, "timeout", "5", process.execPath, "-e", asks);
    await answering;
  }

  it.each(["IPv4", "IPv6"] as const)(
    "tells for each Service what came to it, and keeps that when its endpoints change: %s",
    async (family) => {
      const { cluster, balanced: lb, node: own, nft, datagram } = PLACES[family];
      const proxy = await open(family, { "count-bytes": true });
      await sync(proxy);
      expect(await proxy.counts()).toEqual({});
      const port = 80;
      await send([`${cluster}1`, port], [`${cluster}1`, port], [`${cluster}1`, port], [`${cluster}2`, port], [`${cluster}6`, port]);
      await send([`${lb}3`, port], [`${lb}4`, port], [`${lb}4`, port], [own, 30_005], [`${cluster}99`, port], [own, 30_099]);
      const first = await proxy.counts();
      expect(first).toEqual({
        "shop/web:main/UDP": { connections: 3, bytesIn: 3 * datagram },
        "shop/empty:main/UDP": { rejects: 1 },
        "shop/sticky:main/UDP": { connections: 1, bytesIn: datagram },
        "shop/elsewhere:main/UDP": { dropsWithoutLocal: 1 },
        "shop/ranged:main/UDP": { dropsOutsideRanges: 2 },
        "shop/port:main/UDP": { connections: 1, bytesIn: datagram },
      });
      await echo(family, "echo", `${cluster}7`, port);
      await echo(family, "self", `${cluster}8`, port);
      const once = { connections: 1, bytesIn: datagram, bytesOut: datagram };
      const echoed = { "shop/echo:main/UDP": once, "shop/self:main/UDP": once };
      expect(await proxy.counts()).toEqual({ ...first, ...echoed });
      // Another process, and endpoints of which one chain more picks.
      const second = await open(family, { "count-bytes": true });
      expect(await sync(second)).toBe(0);
      await sync(
        second,
        FIXTURES.map((one) => (one.name === "web" ? { ...one, remote: 7 } : one)),
      );
      await send([`${cluster}1`, port]);
      expect(await second.counts()).toEqual({
        ...first,
        ...echoed,
        "shop/web:main/UDP": { connections: 4, bytesIn: 4 * datagram },
      });
      // Without bytes the same table goes on counting, but for three chains.
      const third = await open(family, nftModule.countingOptions as Record<string, boolean>);
      expect(await sync(third)).toBe(4);
      await send([`${cluster}1`, port]);
      expect(await third.counts()).toEqual({
        ...first,
        ...echoed,
        "shop/web:main/UDP": { connections: 5, bytesIn: 4 * datagram },
      });
      // Without counting the table is as it always was.
      await sync(await open(family));
      expect(await run(node, "nft", "list", "table", nft, "turnout")).not.toMatch(/counted|counter/);
    },
  );
});

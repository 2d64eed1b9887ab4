import { rm } from "node:fs/promises";
import { nodeManifests, serviceManifest } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openUnread, sayNonsense } from "./bad-clients.ts";
import { BAD_PEERS, SILENT } from "./bad-peers.ts";
import { startLoad } from "./load.ts";
import type { RunningLoad } from "./load.ts";
import type { Proxy } from "./proxy.ts";
import { reach } from "./reach.ts";
import type { TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";
import { healthOf, listenTo, metricOf, rulesOf, problems, writesOf } from "./split-probes.ts";
import type { LogLine } from "./split-probes.ts";

const AWAY = "the node-state API is away, rules stay as they are; trying again";
const FOLLOWING = "following the node-state API";
/** What one service's change, or the barrier's, may cost at most; there are hundreds of objects. */
const FEW = 40;
/** Clients that don't read. */
const UNREAD = 100;

describe("node-state server and backend, two processes", needs("root", "ip", "nft>=1.0.1"), () => {
  let site: Site;
  let service: TestService;
  let load: RunningLoad;
  beforeAll(async () => {
    site = await createSite({ layout: "two processes", isMeddled: true });
    service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
    const many = Array.from({ length: 20 }, (_, index): [string, { readonly endpoints: readonly string[] }] => [
      `many-${index}`,
      { endpoints: ["pod-1-1", "pod-1-2", "pod-2-1"] },
    ]);
    await site.services.createAll(Object.fromEntries(many));
  });
  afterAll(() => site?.destroy());
  beforeEach(async () => {
    for (const { node } of site.proxies) site.interceptor(node.name).treat();
    await site.waitForSync();
  });

  const begin = async (): Promise<void> => {
    load = await startLoad(site, [
      { from: "pod-1-3", way: "clusterIP", service },
      { from: "client1", way: "nodePort@node2", service },
      { from: "node1", way: "externalIP", service },
    ]);
    await load.more(10);
  };
  const expectUnbroken = async (): Promise<void> => {
    await load.more(10);
    const { tallies, held } = await load.stop();
    expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
    expect(new Set(held)).toEqual(new Set(["open"]));
  };
  const each = <T>(act: (proxy: Proxy) => Promise<T>): Promise<readonly T[]> => Promise.all(site.proxies.map(act));
  const listenToAll = (): readonly (() => readonly LogLine[])[] => site.proxies.map(({ backend }) => listenTo(backend.log));
  const says = async (lines: () => readonly LogLine[], message: string): Promise<void> => {
    await expect.poll(() => lines().map(({ msg }) => msg)).toContain(message);
  };
  /** Rules when idle chains are gone: a change leaves some for a second. */
  const rulesAtRest = async (): Promise<readonly unknown[]> => {
    let rules: readonly unknown[] = [];
    const isSame = async (): Promise<boolean> => {
      const before = rules;
      rules = await each(rulesOf);
      return JSON.stringify(rules) === JSON.stringify(before);
    };
    await expect.poll(isSame, { interval: 3_000 }).toBe(true);
    return rules;
  };
  const all = <T>(one: T): readonly T[] => site.proxies.map(() => one);
  let nudges = 0;
  /** Have something new told to everybody who listens, and don't wait for them. */
  const nudge = async (): Promise<void> => {
    nudges += 1;
    await site.api.apply([serviceManifest({ name: "nudge", clusterIPs: [`10.96.9.${nudges}`], ports: [{ port: 80, targetPort: 80 }] })]);
  };
  const ask = (): Promise<string> => reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" });

  it("a node-state server killed and started again: no connection fails, no rule is written, each backend says two lines", async () => {
    await begin();
    const [before, rules, heard] = [await each(writesOf), await each(rulesOf), listenToAll()];
    await each(async ({ stateServer }) => stateServer?.end("SIGKILL"));
    for (const lines of heard) await says(lines, AWAY);
    await load.more(20);
    expect(await each((proxy) => healthOf(proxy, "backend"))).toEqual(all([200, 200]));
    for (const proxy of site.proxies) proxy.startStateServer();
    for (const lines of heard) await says(lines, FOLLOWING);
    // Both families came in full, and nothing of it was news.
    await expect.poll(() => each((proxy) => metricOf(proxy, "stateServer", "turnout_api_full_states_total"))).toEqual(all(2));
    expect(await each((proxy) => healthOf(proxy, "stateServer", ["/livez", "/healthz", "/readyz"]))).toEqual(all([200, 200, 200]));
    await expectUnbroken();
    expect(await each(writesOf)).toEqual(before);
    expect(await each(rulesOf)).toEqual(rules);
    expect(heard.map((lines) => lines().map(({ msg }) => msg))).toEqual(all([AWAY, FOLLOWING]));
  });

  it("a node-state server away for long while endpoints change: what changed is all that is written", async () => {
    const other = await site.services.create({ endpoints: ["pod-1-1"] });
    await begin();
    const [before, objects] = [await each(writesOf), await metricOf(site.proxy("node1"), "backend", "turnout_objects")];
    expect(objects).toBeGreaterThan(10 * FEW);
    await each(async ({ stateServer }) => stateServer?.end("SIGKILL"));
    await service.setEndpoints(["pod-1-1", "pod-1-2", "pod-2-1"]);
    await other.setEndpoints([]);
    await other.setEndpoints(["pod-2-2"]);
    await service.setEndpoints(["pod-1-1", "pod-2-1", "pod-2-2"]);
    await load.more(40);
    for (const proxy of site.proxies) proxy.startStateServer();
    await site.waitForSync();
    await expectUnbroken();
    expect(await ask()).toBe("pod-1-1 pod-2-1 pod-2-2 saw pod-1-3");
    expect(await reach(site, other, "IPv6", { from: "client1", way: "nodePort@node1" })).toBe("pod-2-2 saw node1");
    const written = await each(writesOf);
    expect(written.map((count, index) => count - (before[index] ?? 0) < 2 * FEW)).toEqual(all(true));
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
    await other.remove();
  });

  it("a connection that is cut: the next one goes on where it was, for a few bytes", async () => {
    await begin();
    const heard = listenToAll();
    const counts = (): Promise<readonly number[]> => each((proxy) => metricOf(proxy, "stateServer", "turnout_api_full_states_total"));
    const [before, full] = [await each(writesOf), await counts()];
    const bytes = (): readonly number[] => site.proxies.map(({ node }) => site.interceptor(node.name).toBackend);
    const cut = bytes();
    for (const { node } of site.proxies) site.interceptor(node.name).treat();
    for (const lines of heard) await says(lines, FOLLOWING);
    const resumed = bytes().map((count, index) => count - (cut[index] ?? 0));
    expect(await each(writesOf)).toEqual(before);
    await site.waitForSync();
    expect(await counts()).toEqual(full);
    expect(resumed.map((count) => count < 2_000)).toEqual(all(true));
    expect((await each(writesOf)).map((count, index) => count - (before[index] ?? 0) < FEW)).toEqual(all(true));
    await expectUnbroken();
    expect(heard.map((lines) => lines().map(({ msg }) => msg))).toEqual(all([AWAY, FOLLOWING]));
  });

  it("a socket that somebody removed is made again, and found by who was cut off meanwhile", async () => {
    await begin();
    const [heard, stateServers] = [listenToAll(), site.proxies.map(({ stateServer }) => listenTo(() => stateServer?.log() ?? ""))];
    await each(async ({ stateSocket }) => rm(stateSocket));
    for (const { node } of site.proxies) site.interceptor(node.name).treat();
    for (const lines of heard) await says(lines, FOLLOWING);
    await site.waitForSync();
    await expectUnbroken();
    expect(heard.map((lines) => problems(lines()))).toEqual(all([AWAY]));
    expect(stateServers.map((lines) => problems(lines()))).toEqual(all(["our socket was removed, and is made again"]));
    expect(await each((proxy) => healthOf(proxy, "stateServer", ["/livez", "/healthz", "/readyz"]))).toEqual(all([200, 200, 200]));
  });

  it("who says nothing, or nonsense, is given up and told of once; rules and connections stay", async () => {
    await begin();
    const [first, second] = [site.proxy("node1"), site.proxy("node2")];
    const silence = async (): Promise<void> => {
      const lines = listenTo(second.backend.log);
      site.interceptor("node2").treat(SILENT);
      // The connection that broke, and ten seconds later the one that nothing was said on.
      await expect.poll(() => problems(lines())).toEqual([AWAY, AWAY]);
      expect(lines().map(({ error = "" }) => error.slice(0, 11))).toEqual(["[feed_lost]", "[timed_out]"]);
      site.interceptor("node2").treat();
      await says(lines, FOLLOWING);
    };
    const nonsense = async (): Promise<void> => {
      for (const [name, peer] of Object.entries(BAD_PEERS)) {
        const [before, rules, lines] = [await writesOf(first), await rulesOf(first), listenTo(first.backend.log)];
        site.interceptor("node1").treat(peer);
        await site.interceptor("node1").more(4);
        expect([name, await healthOf(first, "backend")]).toEqual([name, [200, 200]]);
        const reported = problems(lines()).length;
        // The connection that broke was one trouble; what came then may be one of another kind, and no more.
        expect([name, reported === 1 || reported === 2, new Set(problems(lines()))]).toEqual([name, true, new Set([AWAY])]);
        expect([name, await writesOf(first), await rulesOf(first)]).toEqual([name, before, rules]);
        site.interceptor("node1").treat();
        await says(lines, FOLLOWING);
        // Something is delivered, so that the series of failures is over.
        await nudge();
        await expect.poll(() => writesOf(first)).toBeGreaterThan(before);
      }
    };
    await Promise.all([silence(), nonsense()]);
    await site.waitForSync();
    await expectUnbroken();
  });

  it("clients that ask and don't read, or talk nonsense, cost the node-state server nothing and hold up nobody", async () => {
    await begin();
    const proxy = site.proxy("node1");
    const sent = (): Promise<number> => metricOf(proxy, "stateServer", "turnout_api_change_sets_total");
    const memory = (): Promise<number> => metricOf(proxy, "stateServer", "process_resident_memory_bytes");
    const unread = await Promise.all(Array.from({ length: UNREAD }, () => openUnread(proxy.stateSocket, "node1")));
    await expect.poll(() => metricOf(proxy, "stateServer", "turnout_api_watchers")).toBe(1 + UNREAD);
    await Promise.all(Array.from({ length: 20 }, () => sayNonsense(proxy.stateSocket)));
    await site.waitForSync();
    const [sentBefore, bytesBefore] = [await sent(), await memory()];
    for (let update = 0; update < 100; update += 1) await nudge();
    await site.waitForSync();
    // The one that reads may have had an answer for each change; the others, at most the one that waits to be read.
    expect((await sent()) - sentBefore).toBeLessThan(2 * 104 + UNREAD);
    expect((await memory()) - bytesBefore).toBeLessThan(50_000_000);
    expect(await healthOf(proxy, "stateServer", ["/livez", "/healthz", "/readyz"])).toEqual([200, 200, 200]);
    for (const one of unread) one.close();
    await expect.poll(() => metricOf(proxy, "stateServer", "turnout_api_watchers")).toBe(1);
    await expectUnbroken();
  });

  it("a backend killed while its node-state server is away, and back before it, waits with its rules in force", async () => {
    await begin();
    const rules = await each(rulesOf);
    await each((proxy) => proxy.end("SIGKILL"));
    const heard = listenToAll();
    for (const { backend } of site.proxies) backend.again();
    for (const lines of heard) await says(lines, AWAY);
    await load.more(20);
    // It lives, but nobody has told it yet whether its node may get traffic.
    await expect.poll(() => each((proxy) => healthOf(proxy, "backend"))).toEqual(all([503, 200]));
    expect(await each(rulesOf)).toEqual(rules);
    for (const proxy of site.proxies) proxy.startStateServer();
    await expect.poll(() => each((proxy) => healthOf(proxy, "backend"))).toEqual(all([200, 200]));
    expect(await each(writesOf)).toEqual(all(0));
    expect(await each(rulesOf)).toEqual(rules);
    await site.waitForSync();
    await expectUnbroken();
  });

  it("a Node object that is deleted changes no rule, also of a backend that starts meanwhile, and Services are followed", async () => {
    const proxy = site.proxy("node1");
    const [rules, lines] = [await rulesOf(proxy), listenTo(proxy.backend.log)];
    await site.api.delete({ kind: "Node", namespace: "", name: "node1" });
    await expect.poll(() => healthOf(proxy, "backend")).toEqual([503, 200]);
    await proxy.backend.end("SIGKILL");
    proxy.backend.again();
    await says(lines, "first sync done");
    expect([await writesOf(proxy), await rulesOf(proxy)]).toEqual([0, rules]);
    expect(await reach(site, service, "IPv4", { from: "client1", way: "nodePort@node1" })).toBe("pod-1-1 pod-2-1 saw node1");
    await service.setEndpoints(["pod-1-1"]);
    expect(await reach(site, service, "IPv4", { from: "client1", way: "nodePort@node1" })).toBe("pod-1-1 saw node1");
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
    await site.api.apply(nodeManifests(site.cluster));
    await expect.poll(() => healthOf(proxy, "backend")).toEqual([200, 200]);
  });

  it("a backend killed under a node-state server that goes on adopts its rules as they are", async () => {
    await begin();
    const rules = await rulesAtRest();
    await each(({ backend }) => backend.end("SIGKILL"));
    await load.more(20);
    for (const { backend } of site.proxies) backend.again();
    await expect.poll(() => each((proxy) => metricOf(proxy, "backend", "turnout_objects"))).not.toContain(0);
    expect(await each(writesOf)).toEqual(all(0));
    expect(await each(rulesOf)).toEqual(rules);
    await site.waitForSync();
    await expectUnbroken();
  });
});

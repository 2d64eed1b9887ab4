import { flushPromises, TestClock } from "@turnout/core/testing";
import { EchoCount, OwnCommits } from "@turnout/host";
import type { CommitMark } from "@turnout/host";
import { createFakeNetlink } from "@turnout/host/testing";
import type { FakeNetlink } from "@turnout/host/testing";
import type { HostEvent } from "@turnout/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NftFacts } from "./options.ts";
import { watchHost } from "./watch.ts";

const OURS = ["ip turnout"];

describe("watchHost", () => {
  let netlink: FakeNetlink;
  let own: OwnCommits;
  let echoes: EchoCount;
  let stop: AbortController;
  beforeEach(() => {
    netlink = createFakeNetlink();
    own = new OwnCommits();
    echoes = new EchoCount();
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  /** A commit by our own session, as the kernel and the session's counters see it. */
  const commitOurs = (): void => {
    echoes.expect();
    void own.during(1, () => Promise.resolve());
    netlink.commitNft({ pid: 1, process: "nft", tables: OURS });
  };
  const commitExternal = (tables: readonly string[]): void => netlink.commitNft({ pid: 666, process: "firewalld", tables });

  /** Start watching, then act; resolves to what was told after the facts it begins with, until the address change that ends it. */
  const reported = async (mark: CommitMark | undefined, act: () => void | Promise<void>): Promise<readonly HostEvent<NftFacts>[]> => {
    const clock = new TestClock(0);
    const events: HostEvent<NftFacts>[] = [];
    const ended = (async (): Promise<void> => {
      for await (const event of watchHost({ world: { netlink, clock }, family: "IPv4", own, echoes, mark }, stop.signal)) {
        events.push(event);
        if (event.kind === "facts" && events.length > 1) return;
      }
    })();
    for (let turn = 0; turn < 40; turn++) {
      await clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await act();
    await new Promise((resolve) => setImmediate(resolve));
    netlink.setAddresses("IPv4", [{ ip: "172.18.0.1", prefixLength: 24, link: "eth0" }]);
    await ended;
    expect(events.shift()).toEqual({ kind: "facts", facts: { addresses: { IPv4: [], IPv6: [] } } });
    return events;
  };
  const kinds = (events: readonly HostEvent<NftFacts>[]): readonly string[] => events.map(({ kind }) => kind);

  it("begins with the addresses as they are, and loses none that come while it reads them", async () => {
    const [before, after] = ["172.18.0.8", "172.18.0.9"].map((ip) => [{ ip, prefixLength: 24, link: "eth0" }] as const);
    netlink.setAddresses("IPv4", before ?? []);
    const read = netlink.addresses;
    const addresses: typeof read = async (family) => {
      const found = await read(family);
      if (family === "IPv4") netlink.setAddresses("IPv4", after ?? []);
      return found;
    };
    const world = { clock: new TestClock(0), netlink: { ...netlink, addresses } };
    const watching = watchHost({ world, family: "IPv4", own, echoes, mark: undefined }, stop.signal)[Symbol.asyncIterator]();
    const facts = (ip: string): HostEvent<NftFacts> => ({ kind: "facts", facts: { addresses: { IPv4: [ip], IPv6: [] } } });
    expect((await watching.next()).value).toEqual(facts("172.18.0.8"));
    expect((await watching.next()).value).toEqual(facts("172.18.0.9"));
  });

  it("does not take our own commits for somebody else's", async () => {
    expect(kinds(await reported(undefined, commitOurs))).toEqual(["facts"]);
  });

  it("names who changed our table", async () => {
    const events = await reported(undefined, () => commitExternal(OURS));
    expect(events[0]).toEqual({ kind: "drift", what: "firewalld (pid 666) changed table ip turnout" });
  });

  it("is not concerned with other tables", async () => {
    expect(kinds(await reported(undefined, () => commitExternal(["ip nat", "ip6 turnout"])))).toEqual(["facts"]);
  });

  it("does not take a commit of ours for somebody else's that was under way while more was told than could be kept", async () => {
    const mark = await own.mark(netlink);
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    const events = await reported(mark, async () => {
      const underWay = echoes.during(() => own.during(1, () => done));
      for (let count = 0; count < 2_000; count++) commitOurs();
      await new Promise((resolve) => setTimeout(resolve, 0));
      netlink.commitNft({ pid: 1, process: "nft", tables: OURS });
      finish();
      await underWay;
      commitOurs();
    });
    expect(kinds(events)).toEqual(["facts"]);
  });

  it("tells of others after a start with a commit of ours under way and one of others before it", async () => {
    const clock = new TestClock(0);
    const mark = await own.mark(netlink);
    commitExternal(OURS);
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    const underWay = echoes.during(() => own.during(1, () => done));
    const whats: string[] = [];
    const watching = (async (): Promise<void> => {
      for await (const event of watchHost({ world: { netlink, clock }, family: "IPv4", own, echoes, mark }, stop.signal))
        if (event.kind === "drift") whats.push(event.what);
    })();
    // It is in the kernel, and its program has not said so yet.
    netlink.commitNft({ pid: 1, process: "nft", tables: OURS });
    // Longer than a difference is looked at again.
    for (let ms = 0; ms < 32_000; ms += 50) {
      await clock.advance(50);
      await flushPromises();
    }
    expect(whats).toEqual([]);
    finish();
    await underWay;
    await clock.advance(50);
    await flushPromises();
    commitExternal(OURS);
    await flushPromises();
    expect(whats).toEqual(["the ruleset changed before it was watched", "firewalld (pid 666) changed table ip turnout"]);
    stop.abort();
    await watching;
  });

  it("notices what happened between the last reading and the watch", async () => {
    const mark = await own.mark(netlink);
    commitOurs();
    commitExternal(OURS);
    expect(kinds(await reported(mark, () => undefined))).toEqual(["drift", "facts"]);
  });

  it("says nothing when only we committed in between", async () => {
    const mark = await own.mark(netlink);
    commitOurs();
    expect(kinds(await reported(mark, () => undefined))).toEqual(["facts"]);
  });
});

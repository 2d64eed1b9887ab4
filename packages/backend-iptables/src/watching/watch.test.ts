import { TestClock } from "@turnout/core/testing";
import type { HostEvent } from "@turnout/core";
import { EchoCount, OwnCommits } from "@turnout/host";
import type { CommitMark, NftChange, FingerprintWatch } from "@turnout/host";
import { legacyFingerprints } from "@turnout/host/iptables";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createFakeExec, createFakeNetlink } from "@turnout/host/testing";
import type { FakeNetlink } from "@turnout/host/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { IptablesFacts } from "../options.ts";
import { watchHost } from "./watch.ts";

const quiet = { debug: (): void => undefined, info: (): void => undefined, warn: (): void => undefined, error: (): void => undefined };

describe("watchHost", () => {
  let netlink: FakeNetlink;
  let clock: TestClock;
  let own: OwnCommits;
  let echoes: EchoCount;
  let stop: AbortController;
  let looks: number;
  /** What `iptables-save` prints of table nat. */
  let saved: string;
  let chains: Map<string, string>;
  let fingerprints: FingerprintWatch;
  let events: HostEvent<IptablesFacts>[];
  beforeEach(() => {
    netlink = createFakeNetlink();
    clock = new TestClock(0);
    own = new OwnCommits();
    echoes = new EchoCount();
    stop = new AbortController();
    looks = 0;
    saved = "";
    chains = new Map();
    events = [];
  });
  afterEach(() => stop.abort());

  const flushPromises = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const commitExternal = (...tables: readonly string[]): void => netlink.commitNft({ pid: 666, process: "portmap", tables });
  /** After the facts that it begins with. */
  const whats = (): readonly string[] => events.slice(1).map((event) => (event.kind === "drift" ? event.what : event.kind));

  async function start(variant: IptablesVariant, mark?: CommitMark): Promise<void> {
    const exec = createFakeExec(
      Array.from({ length: 3 }, () => ({ run: ["sysctl", "-n", "net.netfilter.nf_conntrack_tcp_be_liberal"], result: { stdout: "0\n" } })),
    );
    const tool = {
      choice: () => Promise.resolve({ variant, version: "1.8.9", suffix: `-${variant}`, because: "", mixed: undefined }),
      variant,
      save: (): Promise<string> => {
        looks++;
        return Promise.resolve(saved);
      },
      listChain: (_table: string, chain: string): Promise<string | undefined> => Promise.resolve(chains.get(chain)),
    };
    const world = { netlink, clock, exec, log: quiet };
    fingerprints = legacyFingerprints({ family: "IPv4", clock, tool, netlink });
    const watching = watchHost({ world, family: "IPv4", own, tool, echoes, fingerprints, mark, hasGuard: false }, stop.signal);
    void (async (): Promise<void> => {
      for await (const event of watching) events.push(event);
    })();
    await flushPromises();
  }

  it("does not take our own commits for somebody else's, nor those to other tables or the other family", async () => {
    await start("nft");
    echoes.expect(2);
    netlink.commitNft({ pid: 1, process: "iptables-restor", tables: ["ip filter"] });
    netlink.commitNft({ pid: 1, process: "iptables-restor", tables: ["ip nat"] });
    commitExternal("ip6 nat");
    commitExternal("ip raw");
    commitExternal("inet firewalld");
    await flushPromises();
    await clock.advance(30_000);
    expect({ whats: whats(), looks }).toEqual({ whats: [], looks: 0 });
  });

  it("suspects each commit of others to the tables we share, without a look of its own", async () => {
    await start("nft");
    commitExternal("ip nat", "ip mangle");
    commitExternal("ip filter");
    await flushPromises();
    expect({ whats: whats(), looks }).toEqual({
      whats: ["portmap (pid 666) changed table ip nat, ip mangle", "portmap (pid 666) changed table ip filter"],
      looks: 0,
    });
  });

  const change = (name: string): NftChange => ({ table: "ip nat", verb: "deleted", kind: "rule", name, keys: [] });
  const leftOf = (event: HostEvent<IptablesFacts> | undefined): unknown => {
    const left = event?.kind === "drift" ? event.left : undefined;
    return typeof left === "object" && "covers" in left ? { objects: [...left.objects.keys()], isCurrent: left.isCurrent() } : left;
  };

  it("looks at the chains of ours that a commit touched, and at no others", async () => {
    await start("nft");
    await clock.advance(2_000);
    const rule = "-p tcp --dport 30001 -j KUBE-EXT-AAAAAAAAAAAAAAAA";
    chains.set("KUBE-NODEPORTS", `-N KUBE-NODEPORTS\n-A KUBE-NODEPORTS ${rule}\n`);
    const commit = (pid: number, ...names: readonly string[]): void =>
      netlink.commitNft({ pid, process: "iptables-nft", tables: ["ip nat"], changes: names.map(change) });
    commit(7, "CNI-HOSTPORT-DNAT");
    commit(8, "PREROUTING", "KUBE-NODEPORTS", "KUBE-SERVICES");
    await flushPromises();
    expect(whats()).toEqual(["iptables-nft (pid 8) changed table ip nat"]);
    const objects = ["shared nat KUBE-NODEPORTS", `rule nat KUBE-NODEPORTS ${rule}`];
    expect(leftOf(events.at(-1))).toEqual({ objects, isCurrent: true });
    await own.during(1, () => Promise.resolve());
    expect(leftOf(events.at(-1))).toEqual({ objects, isCurrent: false });
  });

  it("suspects somebody where the kernel could not tell everything", async () => {
    await start("nft");
    // More than are kept for somebody who does not read them; none of them concerns us.
    for (let count = 0; count < 1_100; count++) commitExternal("ip raw");
    await flushPromises();
    expect(whats()).toEqual(["the ruleset changed faster than the kernel could tell"]);
  });

  it("compares when somebody committed between the last look and now, and not when only we did", async () => {
    const mark = await own.mark(netlink);
    await own.during(1, async () => netlink.commitNft({ pid: 1, process: "iptables-restor", tables: ["ip nat"] }));
    await start("nft", mark);
    expect(whats()).toEqual([]);
    stop.abort();
    stop = new AbortController();
    events = [];
    commitExternal("ip nat");
    const again = start("nft", mark);
    // It looks again for a second: a commit of ours may be under way.
    for (let turn = 0; turn < 60; turn++) {
      await clock.advance(50);
      await flushPromises();
    }
    await again;
    expect(whats()).toEqual(["the ruleset changed before it was watched"]);
  });

  it("looks at a table of the legacy variant once it holds more or less than we had left there", async () => {
    netlink.setLegacyTable("IPv4", "nat", 12);
    netlink.setLegacyTable("IPv4", "filter", 7);
    await start("legacy");
    commitExternal("ip nat");
    await fingerprints.during(() => Promise.resolve(netlink.setLegacyTable("IPv4", "nat", 14)));
    await clock.advance(60_000);
    await flushPromises();
    expect({ whats: whats(), looks }).toEqual({ whats: [], looks: 0 });
    const rule = "-p tcp --dport 30001 -j KUBE-EXT-AAAAAAAAAAAAAAAA";
    saved = `*nat\n:KUBE-NODEPORTS - [0:0]\n-A KUBE-NODEPORTS ${rule}\nCOMMIT\n`;
    netlink.setLegacyTable("IPv4", "nat", 13);
    await clock.advance(200);
    await flushPromises();
    const who = "the kernel does not tell by whom";
    expect(whats()).toEqual([`legacy iptables changed in table nat (13 entries instead of 14); ${who}`]);
    expect(leftOf(events.at(-1))).toEqual({ objects: ["shared nat KUBE-NODEPORTS", `rule nat KUBE-NODEPORTS ${rule}`], isCurrent: true });
    expect(looks).toBe(1);
  });

  it.each(["legacy", "nft"] as const)("tells of the addresses as they are, and of new ones (%s)", async (variant) => {
    netlink.setAddresses("IPv4", [{ ip: "172.18.0.8", prefixLength: 24, link: "eth0" }]);
    await start(variant);
    netlink.setAddresses("IPv4", [{ ip: "172.18.0.9", prefixLength: 24, link: "eth0" }]);
    await flushPromises();
    const facts = (ip: string): unknown => ({
      kind: "facts",
      facts: { addresses: { IPv4: [ip], IPv6: [] }, isTcpLiberal: false, canCount: false },
    });
    expect(events).toEqual([facts("172.18.0.8"), facts("172.18.0.9")]);
  });
});

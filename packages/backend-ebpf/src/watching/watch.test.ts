import { ProxyError } from "@turnout/core/backend";
import type { Drift, SeenPart } from "@turnout/core/backend";
import { flushPromises, RecordingLog, TestClock } from "@turnout/core/testing";
import { createExec, EchoCount, FingerprintWatch } from "@turnout/host";
import type { FingerprintChanges } from "@turnout/host";
import { createFakeNetlink } from "@turnout/host/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ebpfModule } from "../module.ts";
import type { EbpfFacts } from "../options.ts";
import { watchHost } from "./watch.ts";
import type { Watched } from "./watch.ts";
import { createEbpfWorld } from "../world.ts";
import type { EbpfWorld } from "../world.ts";

let clock: TestClock;
let netlink: ReturnType<typeof createFakeNetlink>;
/** Network namespaces that are there, with their cookies. */
let namespaces: Map<string, string>;
let stop: AbortController;
let drifts: string[];
/** What was seen of that; undefined: everything has to be compared. */
let lefts: Drift["left"][];
const TABLE: SeenPart = { covers: () => true, objects: new Map(), isCurrent: () => true };
/** What is attached where. */
let attached: ReadonlyMap<string, string>;

beforeEach(() => {
  clock = new TestClock();
  netlink = createFakeNetlink({ addresses: { IPv4: [{ ip: "172.18.0.1", link: "eth0", prefixLength: 32 }] } });
  namespaces = new Map([["own", "1"]]);
  stop = new AbortController();
  [drifts, lefts] = [[], []];
  attached = new Map([["link a", "1"]]);
});

function worldOf(): EbpfWorld {
  const cookieOf = (path = "own"): string => {
    const cookie = namespaces.get(path);
    if (cookie === undefined) throw new ProxyError("not_found", "a network namespace is gone", { object: path });
    return cookie;
  };
  return {
    ...createEbpfWorld({ exec: createExec(), clock, log: new RecordingLog() }),
    netlink,
    mounts: () => ({ bpffs: "/sys/fs/bpf", cgroup2: "/cgroup" }),
    namespaceCookie: cookieOf,
    cgroupNumber: (folder) => (folder === "/cgroup" ? "7" : undefined),
  };
}

/** All facts that are told, as they come. */
function follow(raw: Parameters<typeof ebpfModule.parseOptions>[0], some: Partial<Watched> = {}): EbpfFacts[] {
  const reported: EbpfFacts[] = [];
  const fingerprints = (signal: AbortSignal): readonly AsyncIterable<FingerprintChanges>[] => [
    new FingerprintWatch({ clock, look: () => attached }).follow(signal),
  ];
  const see = (changes: FingerprintChanges): Promise<Drift> =>
    Promise.resolve({ kind: "drift", what: Array.from(changes, ([sign, { now }]) => `${sign} ${now}`).join() });
  const watched = {
    hasPackets: false,
    canServePackets: () => Promise.resolve(false),
    echoes: undefined,
    seeTable: () => Promise.resolve(TABLE),
    fingerprints,
    see,
    ...some,
  };
  const run = async (): Promise<void> => {
    for await (const event of watchHost(ebpfModule.parseOptions(raw), worldOf(), watched, stop.signal)) {
      if (event.kind === "facts") reported.push(event.facts);
      else {
        drifts.push(event.what);
        lefts.push(event.left);
      }
    }
  };
  void run();
  return reported;
}

describe("watching the host", () => {
  it("begins with the facts, tells of changed addresses, and of changed signs", async () => {
    const reported = follow({});
    await flushPromises();
    const first = {
      addresses: { IPv4: ["172.18.0.1"], IPv6: [] },
      addressesOfNoProxy: { IPv4: ["172.18.0.1"], IPv6: [] },
      hostNamespace: "1",
      optedOut: [],
      cgroup: "7",
      hasPackets: false,
      devices: [],
    };
    expect(reported).toEqual([first]);
    netlink.setAddresses("IPv6", [{ ip: "fd00:18::1", link: "eth0", prefixLength: 32 }]);
    await flushPromises();
    const addresses = { IPv4: ["172.18.0.1"], IPv6: ["fd00:18::1"] };
    expect(reported.slice(1)).toEqual([{ ...first, addresses, addressesOfNoProxy: addresses }]);
    await clock.advance(10_000);
    expect(reported.length).toBe(2);
    attached = new Map();
    await clock.advance(200);
    expect([reported.length, drifts]).toEqual([2, ["link a undefined"]]);
    stop.abort();
    await flushPromises();
    expect(clock.sleeping).toBe(0);
  });

  it("tells of devices that come and go, and of others' changes to the table of nft, of which alone is seen what is left", async () => {
    const echoes = new EchoCount();
    const reported = follow({}, { hasPackets: true, echoes });
    await flushPromises();
    const device = { index: 2, name: "eth0", kind: "", master: undefined, isLoopback: false, isUp: true, hasCarrier: true };
    netlink.setDevices([device], { IPv4: [{ destination: "0.0.0.0/0", device: 2, hasGateway: true }] });
    await flushPromises();
    netlink.setDevices([]);
    await flushPromises();
    expect(reported.map(({ devices }) => devices.map(({ name, isWayOut }) => [name, isWayOut]))).toEqual([[], [["eth0", true]], []]);
    echoes.expect();
    for (const tables of [["inet turnout-ebpf"], ["inet other"], ["inet turnout-ebpf"]])
      netlink.commitNft({ pid: 7, process: "nft", tables });
    await flushPromises();
    expect(drifts).toEqual(["nft (pid 7) changed table inet turnout-ebpf"]);
    expect(lefts).toEqual([TABLE]);
    stop.abort();
    await flushPromises();
  });

  it("looks every five seconds for namespaces that are opted out, and takes one that is gone for none", async () => {
    const reported = follow({ "opt-out-namespaces": ["/run/netns/a", "/run/netns/b"], cgroup: "/elsewhere" });
    await flushPromises();
    namespaces.set("/run/netns/b", "22");
    await clock.advance(4_999);
    expect(reported.map(({ optedOut }) => optedOut)).toEqual([[]]);
    await clock.advance(1);
    namespaces.set("/run/netns/a", "21");
    namespaces.delete("/run/netns/b");
    await clock.advance(5_000);
    expect(reported.map(({ optedOut }) => optedOut)).toEqual([[], ["22"], ["21"]]);
    expect(reported[0]?.cgroup).toBe("0");
    stop.abort();
    await flushPromises();
  });

  it("looks once a minute whether packets can be served by now, and ends when they can", async () => {
    const asked: number[] = [];
    const reported = follow({}, { canServePackets: () => Promise.resolve(asked.push(clock.nowMs()) === 2) });
    await flushPromises();
    await clock.advance(200_000);
    expect(asked.map((ms) => ms - (asked[0] ?? 0))).toEqual([0, 60_000]);
    const before = reported.length;
    netlink.setAddresses("IPv6", [{ ip: "fd00:18::1", link: "eth0", prefixLength: 64 }]);
    await flushPromises();
    expect(reported.length).toBe(before);
  });
});

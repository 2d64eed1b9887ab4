import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import type { Clock, FlowFilter, IPFamily } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { needs } from "@turnout/house/needs";
import { beforeEach, describe, expect, it } from "vitest";
import type { NftElements, NftElementWrite } from "../nft-statement/nft-statement.ts";
import { inOwnNamespaces } from "../test-support/own-namespaces.ts";
import { tool, toolWith } from "../test-support/tool.ts";
import { NetlinkChannel, openSocket } from "./channel.ts";
import { CT, dumpRequest, parseEntry } from "./conntrack/conntrack.ts";
import { openMulticastSocket } from "./multicast-socket.ts";
import { createNetlink } from "./netlink.ts";
import type { Netlink } from "./netlink.ts";
import { NftEventReader } from "./nft/nft-events.ts";
import type { NftEvent } from "./nft/nft-events.ts";
import { NETLINK, NetlinkSocket } from "./socket.ts";
import { REST_MS, watch } from "./watch.ts";
import type { WatchHandlers } from "./watch.ts";

const real = systemClock();
/** Nobody rests here: a watch that the kernel did not wake would wait for days. */
const clock: Clock = { ...real, sleep: (ms, signal) => real.sleep(ms === REST_MS ? 1e9 : ms, signal) };
let netlink: Netlink;

inOwnNamespaces();
beforeEach(() => {
  netlink = createNetlink({ clock });
  return () => netlink.close();
});

/** Create entries: `protocol source:port>destination:port<reply-source:port` (and ` zone`), addresses as they are. */
function insert(flows: readonly string[]): void {
  const lines = flows.map((flow) => {
    const match = /^(\w+) (\S+):(\d+)>(\S+):(\d+)<(\S+):(\d+)(?: (\d+))?$/.exec(flow);
    if (match === null) throw new Error(`bad flow ${flow}`);
    const [, protocol = "", source, sourcePort, destination, port, reply, replyPort, zone] = match;
    const state = { tcp: " --state ESTABLISHED", sctp: " --state ESTABLISHED --orig-vtag 1 --reply-vtag 2" }[protocol] ?? "";
    const reversed = `-r ${reply} -q ${source} --reply-port-src ${replyPort} --reply-port-dst ${sourcePort}`;
    const tuple = `-s ${source} -d ${destination} --sport ${sourcePort} --dport ${port} ${reversed}`;
    return `-I -p ${protocol} ${tuple} -t 600${state}${zone === undefined ? "" : ` -w ${zone}`}\n`;
  });
  // Node's pipes are sockets, which conntrack can't open as /dev/stdin; the shell's is a pipe.
  toolWith(lines.join(""), "sh", "-c", "cat | conntrack --load-file -");
}

/** What is left, as `protocol destination:port<reply-source[ zone]`, sorted. */
function left(family: "ipv4" | "ipv6"): readonly string[] {
  const lines = tool("conntrack", "-L", "-f", family).split("\n");
  const parsed = lines.flatMap((line) => {
    const match = /^(\w+) .*? src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+) .*?src=(\S+) .*?(?:zone=(\d+))?(?: use|$)/.exec(line);
    return match === null ? [] : [`${match[1]} ${match[3]}:${match[5]}<${match[6]}${match[7] === undefined ? "" : ` zone ${match[7]}`}`];
  });
  return parsed.toSorted();
}

function filter(address: string, port: number, keep: readonly string[], only?: readonly string[]): FlowFilter {
  return only === undefined ? { protocol: "UDP", address, port, keep } : { protocol: "UDP", address, port, keep, only };
}

function forget(family: IPFamily, filters: readonly FlowFilter[]): Promise<number> {
  return netlink.deleteFlows(family, filters, new AbortController().signal);
}

const WRITTEN_TABLES = `
table ip t {
  chain c { }
  set ips { type ipv4_addr; }
  map services { type ipv4_addr . inet_proto . inet_service : verdict; }
  map endpoints { typeof ip daddr . tcp dport . numgen random mod 65536 : ip daddr . tcp dport; }
}
table ip6 t {
  chain c { }
  map services { type ipv6_addr . inet_proto . inet_service : verdict; }
}
`;

/** The elements in what nft lists of a set, in order. */
function elementsIn(listed: string): readonly string[] {
  const [, elements = ""] = /elements = \{([^}]*)\}/.exec(listed) ?? [];
  return elements
    .split(",")
    .map((element) => element.trim().replaceAll(/\s+/g, " "))
    .filter((element) => element !== "")
    .toSorted();
}

async function nextEvent(events: AsyncIterator<NftEvent, unknown>): Promise<NftEvent | undefined> {
  const result = await events.next();
  return result.done === true ? undefined : result.value;
}

/** Read on until the end; an event or two may still be waiting. */
/** A watch has ended. */
async function drain(iterator: AsyncIterator<unknown>): Promise<void> {
  while ((await iterator.next()).done !== true);
}

it("a channel's socket takes nothing from another program that knows its port", needs("root", "netns"), () => {
  const asking = openSocket(NETLINK.sockDiag);
  const sockets = readFileSync("/proc/net/netlink", "utf8").split("\n").slice(1, -1);
  const ports = sockets.flatMap((line) => {
    const [, protocol, port] = line.split(/ +/).map(Number);
    return protocol === NETLINK.sockDiag && port !== 0 ? [port ?? 0] : [];
  });
  expect(ports).toHaveLength(1);
  const other = new NetlinkSocket(NETLINK.sockDiag);
  other.connect(ports[0]);
  expect(() => other.send(Buffer.alloc(16))).toThrow("ECONNREFUSED");
  asking.close();
  other.close();
});

describe("named counters of a real kernel", needs("root", "netns", "iptables"), () => {
  // A counter counts the packets of the rules that name it, and goes only when none does.
  it("are made once, count, and stay while a rule names them", async () => {
    const name = "turnout_test_pkts";
    tool("ip", "link", "set", "lo", "up");
    const packets = (): Promise<number | undefined> => netlink.counterPackets(name);
    expect(await packets()).toBeUndefined();
    for (let made = 0; made < 2; made += 1) await netlink.createCounter(name);
    expect(await packets()).toBe(0);
    const rule = ["OUTPUT", "-p", "udp", "--dport", "9", "-m", "nfacct", "--nfacct-name", name];
    tool("iptables", "-A", ...rule);
    const socket = createSocket("udp4");
    for (let sent = 0; sent < 3; sent += 1) await new Promise((resolve) => socket.send("x", 9, "127.0.0.1", resolve));
    socket.close();
    expect(await packets()).toBe(3);
    await netlink.deleteCounter(name);
    expect(await packets()).toBe(3);
    tool("iptables", "-D", ...rule);
    for (let deleted = 0; deleted < 2; deleted += 1) await netlink.deleteCounter(name);
    expect(await packets()).toBeUndefined();
  });
});

describe("elements in a real kernel", needs("root", "netns", "nft"), () => {
  // Elements go to the kernel as they are: nft shows them, others' commits are told and these aren't, and a refusal leaves nothing of its transaction.
  it("are written as nft writes them, as a whole or not at all, and not told to who wrote them", async () => {
    toolWith(WRITTEN_TABLES, "nft", "-f", "-");
    const ending = new AbortController();
    const events = netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
    const before = await netlink.nftGeneration();
    const write = (...statements: readonly NftElements[]): Promise<string> =>
      netlink
        .prepareNftWrite(statements)()
        .then(
          () => "done",
          (error: unknown) => (ProxyError.is(error) ? `${error.code} ${error.object}` : String(error)),
        );
    const plain = (key: string, value = "", comment = ""): NftElementWrite => ({ key, value, comment });
    const ip = { family: "ip", table: "t" } as const;
    const services = { ...ip, verb: "add", set: "services", parts: ["address", "protocol", "port"] } as const;
    const endpoints = { ...ip, verb: "add", set: "endpoints", parts: ["address", "port", "number"] } as const;
    const many = Array.from({ length: 5_000 }, (_, place) => ({
      key: "10.96.0.2 . 80",
      place,
      value: `10.1.${place >> 8}.${place & 255} . 65535`,
      comment: "",
    }));
    expect([
      await write(
        { ...services, elements: [plain("10.96.0.1 . tcp . 80", "goto c", "shop/cart:http"), plain("10.96.0.1 . sctp . 65535", "drop")] },
        { ...endpoints, elements: [{ key: "10.96.0.1 . 80", place: 4_000_000_000, value: "10.1.0.5 . 8080", comment: "" }] },
        { ...ip, verb: "add", set: "ips", parts: ["address"], elements: [plain("255.255.255.255")] },
        { ...services, family: "ip6", elements: [plain("fd00:96::1 . udp . 53", "goto c")] },
      ),
      await write({ ...endpoints, elements: many }),
      await write({ ...services, elements: [plain("10.96.0.1 . sctp . 65535", "drop", "other")] }),
      await write(
        { ...endpoints, elements: [plain("10.96.0.9 . 80 . 1", "10.1.0.5 . 80")] },
        { ...services, elements: [plain("10.96.0.1 . sctp . 65535", "goto c")] },
      ),
      await write({ ...services, verb: "delete", elements: [plain("10.96.0.1 . sctp . 65535"), plain("10.96.0.3 . tcp . 80")] }),
      await write({ ...services, table: "none", elements: [plain("10.96.0.1 . tcp . 81", "drop")] }),
      await write(
        { ...endpoints, verb: "delete", elements: many.map(({ key, place }) => ({ key, place, value: "", comment: "" })) },
        { ...endpoints, elements: [{ key: "10.96.0.2 . 80", place: 0, value: "10.9.9.9 . 1", comment: "" }] },
      ),
    ]).toEqual([
      "done",
      "done",
      "done",
      "already_exists add element ip t services",
      "not_found delete element ip t services",
      "not_found add element ip none services",
      "done",
    ]);
    // One that has nothing to do is no commit.
    expect((await netlink.nftGeneration()) - before).toBe(3);
    // It is there, or this fails.
    tool("nft", "delete element ip t ips { 255.255.255.255 }");
    expect(await nextEvent(events)).toMatchObject({ kind: "commit", process: "nft" });
    ending.abort();
    expect(
      ["ip t services", "ip t endpoints", "ip6 t services"].map((set) => elementsIn(tool("nft", "list", "map", ...set.split(" ")))),
    ).toEqual([
      ["10.96.0.1 . sctp . 65535 : drop", '10.96.0.1 . tcp . 80 comment "shop/cart:http" : goto c'],
      ["10.96.0.1 . 80 . 4000000000 : 10.1.0.5 . 8080", "10.96.0.2 . 80 . 0 : 10.9.9.9 . 1"],
      ["fd00:96::1 . udp . 53 : goto c"],
    ]);
  });
});

describe("conntrack entries of a real kernel", needs("root", "netns", "conntrack"), () => {
  it("deletes the IPv4 UDP flows that are not answered by a kept endpoint, in their zone", async () => {
    insert([
      "udp 10.0.0.1:1001>10.96.0.10:53<10.1.0.5:53",
      "udp 10.0.0.2:1002>10.96.0.10:53<10.1.0.6:53",
      "udp 10.0.0.3:1003>10.96.0.10:53<10.1.0.5:54",
      "udp 10.0.0.4:1004>10.96.0.10:53<10.96.0.10:53",
      "udp 10.0.0.5:1005>10.96.0.10:54<10.1.0.6:53",
      "udp 10.0.0.6:1006>10.96.0.11:53<10.1.0.6:53",
      "tcp 10.0.0.7:1007>10.96.0.10:53<10.1.0.6:53",
      "sctp 10.0.0.8:1008>10.96.0.10:53<10.1.0.6:53",
      "udp fd00::1:1009>fd96::10:53<fd01::6:53",
      "udp 10.0.0.9:1009>10.96.0.12:53<10.1.0.6:53 7",
    ]);
    const kept = ["10.1.0.5:53"];
    const deleted = await forget("IPv4", [filter("10.96.0.10", 53, kept), filter("10.96.0.12", 53, kept)]);
    expect({ deleted, left: left("ipv4"), leftIPv6: left("ipv6") }).toEqual({
      deleted: 4,
      left: [
        "sctp 10.96.0.10:53<10.1.0.6",
        "tcp 10.96.0.10:53<10.1.0.6",
        "udp 10.96.0.10:53<10.1.0.5",
        "udp 10.96.0.10:54<10.1.0.6",
        "udp 10.96.0.11:53<10.1.0.6",
      ],
      leftIPv6: ["udp fd96::10:53<fd01::6"],
    });
  });

  it("deletes IPv6 flows", async () => {
    insert([
      "udp fd00::1:1001>fd96::10:53<fd01::5:53",
      "udp fd00::2:1002>fd96::10:53<fd01::6:53",
      "udp fd00::3:1003>fd96::11:53<fd01::6:53",
      "udp fd00::5:1006>fd96::10:53<fd01::6:53 7",
      "tcp fd00::4:1004>fd96::10:53<fd01::6:53",
      "udp 10.0.0.1:1005>10.96.0.10:53<10.1.0.6:53",
    ]);
    const deleted = await forget("IPv6", [filter("fd96::10", 53, ["[fd01::5]:53"])]);
    expect({ deleted, left: left("ipv6"), leftIPv4: left("ipv4") }).toEqual({
      deleted: 2,
      left: ["tcp fd96::10:53<fd01::6", "udp fd96::10:53<fd01::5", "udp fd96::11:53<fd01::6"],
      leftIPv4: ["udp 10.96.0.10:53<10.1.0.6"],
    });
  });

  it("takes a node port for the host's own addresses only, and `only` at its word", async () => {
    tool("ip", "link", "set", "lo", "up");
    tool("ip", "addr", "add", "192.0.2.1/32", "dev", "lo");
    insert([
      "udp 10.0.0.1:1001>192.0.2.1:30053<10.1.0.5:53",
      "udp 10.0.0.2:1002>192.0.2.1:30053<10.1.0.6:53",
      "udp 10.0.0.3:1003>127.0.0.1:30053<10.1.0.6:53",
      "udp 10.0.0.4:1004>198.51.100.1:30053<198.51.100.1:30053",
      "udp 10.0.0.5:1005>192.0.2.1:30054<10.1.0.7:53",
      "udp 10.0.0.6:1006>192.0.2.1:30054<192.0.2.1:30054",
    ]);
    const deleted = await forget("IPv4", [filter("", 30053, ["10.1.0.5:53"]), filter("", 30054, [], ["10.1.0.7:53"])]);
    expect({ deleted, left: left("ipv4") }).toEqual({
      deleted: 3,
      left: ["udp 192.0.2.1:30053<10.1.0.5", "udp 192.0.2.1:30054<192.0.2.1", "udp 198.51.100.1:30053<198.51.100.1"],
    });
  });

  it("serves thousands of filters in one call", async () => {
    const filters = Array.from({ length: 5_000 }, (_, index) => filter(`10.97.${index >> 8}.${index & 255}`, 53, ["10.1.0.5:53"]));
    const flows = Array.from({ length: 300 }, (_, index) => {
      const reply = index % 3 === 0 ? "10.1.0.5" : "10.1.0.6";
      return `udp 10.0.0.1:${2_000 + index}>10.97.0.${index % 250}:53<${reply}:53`;
    });
    insert([...flows, "udp 10.0.0.1:1999>10.98.0.1:53<10.1.0.6:53", "tcp 10.0.0.1:1998>10.97.0.1:53<10.1.0.6:53"]);
    const deleted = await forget("IPv4", filters);
    const rest = left("ipv4");
    const others = rest.filter((line) => !line.endsWith("<10.1.0.5"));
    expect([deleted, rest.length - others.length, others]).toEqual([200, 100, ["tcp 10.97.0.1:53<10.1.0.6", "udp 10.98.0.1:53<10.1.0.6"]]);
  });

  // The kernel must do the filtering: what comes over the socket is counted.
  it("has the kernel do the filtering, in all zones", async () => {
    const flows = Array.from({ length: 50 }, (_, index) => `udp 10.0.0.1:${2_000 + index}>10.97.0.${index}:53<10.1.0.6:53`);
    insert([...flows, "tcp 10.0.0.1:1998>10.97.0.1:53<10.1.0.6:53", "udp 10.0.0.1:1997>10.97.0.1:53<10.1.0.6:53 7"]);
    const channel = new NetlinkChannel(NETLINK.netfilter);
    const count = async (wanted: Parameters<typeof dumpRequest>[1]): Promise<number> => {
      let entries = 0;
      const end = await channel.dump(CT.dump, dumpRequest("IPv4", wanted), () => entries++);
      if (end.errno !== 0) throw new Error(`errno ${end.errno}`);
      return entries;
    };
    expect([
      await count(undefined),
      await count({}),
      await count({ port: 53 }),
      await count({ port: 54 }),
      await count({ destination: "10.97.0.1", port: 53 }),
    ]).toEqual([52, 51, 51, 0, 2]);
    channel.close();
  });

  // An entry that took the place of the one that was seen: same client, another endpoint.
  it("leaves an entry alone that took the place of the one it saw", async () => {
    insert(["udp 10.0.0.1:1001>10.96.0.10:53<10.1.0.6:53"]);
    const channel = new NetlinkChannel(NETLINK.netfilter);
    const requests: Buffer[] = [];
    await channel.dump(CT.dump, dumpRequest("IPv4", {}), (_, payload) => {
      const entry = parseEntry(payload, "IPv4");
      if (entry !== undefined) requests.push(entry.deleteRequest());
    });
    tool("conntrack", "-F");
    insert(["udp 10.0.0.1:1001>10.96.0.10:53<10.1.0.5:53"]);
    expect([await channel.requestMany(CT.delete, requests), left("ipv4")]).toEqual([[2], ["udp 10.96.0.10:53<10.1.0.5"]]);
    channel.close();
  });

  it("says when it has no right to", needs("setpriv"), async () => {
    const ask = `import { createNetlink } from ${JSON.stringify(import.meta.resolve("./netlink.ts"))};
      const netlink = createNetlink({ clock: undefined });
      const flow = { protocol: "UDP", address: "10.96.0.10", port: 53, keep: [] };
      const asked = [netlink.nftGeneration(), netlink.deleteFlows("IPv4", [flow], new AbortController().signal)];
      console.log((await Promise.allSettled(asked)).map(({ reason }) => reason?.code).join());`;
    const node = [process.execPath, "--conditions=@turnout/source", "--no-warnings", "--input-type=module-typescript", "-e", ask];
    expect(tool("unshare", "-n", "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", ...node)).toBe(
      "permission_denied,permission_denied\n",
    );
  });
});

describe("nf_tables of a real kernel", needs("root", "netns", "nft"), () => {
  it("sees the generation change, and who committed to which tables", async () => {
    const before = await netlink.nftGeneration();
    const ending = new AbortController();
    const events = netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
    tool("nft", "add table ip turnout; add table inet other");
    tool("nft", "add chain ip turnout c");
    expect(await netlink.nftGeneration()).toBe(before + 2);
    const commit = { kind: "commit", pid: expect.any(Number) as unknown, process: "nft" };
    expect(await nextEvent(events)).toMatchObject({ ...commit, generation: before + 1, tables: ["ip turnout", "inet other"] });
    expect(await nextEvent(events)).toMatchObject({ ...commit, generation: before + 2, tables: ["ip turnout"] });
    ending.abort();
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it("lists tables, and tells iptables' by their built-in chains", async () => {
    expect(await netlink.nftTables()).toEqual([]);
    tool(
      "nft",
      "add table ip nat; add chain ip nat PREROUTING; add chain ip nat KUBE-PROXY-CANARY; add chain ip nat X; add set ip nat S { type ipv4_addr; }; add table ip mangle; add chain ip mangle KUBE; add table inet filter; add chain inet filter INPUT",
    );
    const none = { isIptables: false, chains: [], size: 1 };
    expect(await netlink.nftTables()).toEqual([
      { family: "ip", table: "nat", isIptables: true, chains: ["PREROUTING", "KUBE-PROXY-CANARY"], size: 4 },
      { family: "ip", table: "mangle", ...none },
      { family: "inet", table: "filter", ...none },
    ]);
  });

  // More is committed than the socket can hold.
  it("says that commits were lost, and sees the next one", async () => {
    const ending = new AbortController();
    const reader = new NftEventReader();
    const handlers: WatchHandlers<NftEvent> = {
      onMessage(message, put): void {
        const event = reader.receive(message);
        if (event !== undefined) put(event);
      },
      onLost: (put) => put({ kind: "lost" }),
      limit: 10,
      overflow: { kind: "lost" },
    };
    const events = watch(() => openMulticastSocket(NETLINK.netfilter, [7], { bufferBytes: 4096 }), handlers, clock, ending.signal)[
      Symbol.asyncIterator
    ]();
    const elements = Array.from({ length: 1_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`).join(", ");
    toolWith(`add table ip big\nadd set ip big s { type ipv4_addr; }\nadd element ip big s { ${elements} }\n`, "nft", "-f", "-");
    expect(await nextEvent(events)).toEqual({ kind: "lost" });
    tool("nft", "add table ip afterwards");
    expect(await nextEvent(events)).toMatchObject({ tables: ["ip afterwards"] });
    ending.abort();
  });
});

describe("addresses of a real kernel", needs("root", "netns", "ip"), () => {
  it("lists both families and sees changes", async () => {
    tool("ip", "link", "set", "lo", "up");
    const ending = new AbortController();
    const changes = netlink.watchAddresses(ending.signal)[Symbol.asyncIterator]();
    const change = changes.next();
    tool("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1");
    tool("ip", "addr", "add", "192.0.2.7/24", "dev", "veth0");
    tool("ip", "addr", "add", "192.0.2.8", "peer", "198.51.100.8", "dev", "veth0");
    tool("ip", "addr", "add", "2001:db8:0:0::7/64", "dev", "veth0");
    expect(await change).toEqual({ done: false, value: undefined });
    expect([await netlink.addresses("IPv4"), await netlink.addresses("IPv6")]).toEqual([
      [
        { ip: "127.0.0.1", prefixLength: 8, link: "lo" },
        { ip: "192.0.2.7", prefixLength: 24, link: "veth0" },
        { ip: "192.0.2.8", prefixLength: 32, link: "veth0" },
      ],
      [
        { ip: "::1", prefixLength: 128, link: "lo" },
        { ip: "2001:db8::7", prefixLength: 64, link: "veth0" },
      ],
    ]);
    ending.abort();
    await drain(changes);
  });

  it("tells of a pair of devices whether it leads anywhere, and of the addresses at its other end", async () => {
    tool("ip", "link", "set", "lo", "up");
    const holder = spawn("unshare", ["-n", "sh", "-c", "echo; exec sleep 60"], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(holder.stdout, "data");
      for (const line of [`link add veth0 type veth peer name eth0 netns ${holder.pid}`, "link set veth0 up", "link add br0 type bridge"])
        tool("ip", ...line.split(" "));
      const reported = async (): Promise<unknown> => {
        const devices = await netlink.devices();
        const [veth0, br0] = ["veth0", "br0"].map((name) => devices.find((device) => device.name === name));
        const namespace = veth0?.namespace ?? -1;
        const behind = [await netlink.addressesIn(namespace, "IPv4"), await netlink.addressesIn(namespace, "IPv6")].map((all = []) => all);
        return [
          ...[veth0, br0].map((one) => `${one?.isUp} ${one?.hasCarrier} ${one?.namespace === undefined ? "here" : "elsewhere"}`),
          behind.flat().filter((ip) => !ip.startsWith("fe80:")),
        ];
      };
      expect(await reported()).toEqual(["true false elsewhere", "false false here", []]);
      for (const line of ["link set lo up", "link set eth0 up", "addr add 10.1.0.5/32 dev eth0", "addr add fd00::5/128 dev eth0 nodad"])
        tool("nsenter", "-t", String(holder.pid), "-n", "ip", ...line.split(" "));
      expect(await reported()).toEqual(["true true elsewhere", "false false here", ["127.0.0.1", "10.1.0.5", "::1", "fd00::5"]]);
      expect(await netlink.addressesIn(77, "IPv4")).toBeUndefined();
    } finally {
      holder.kill("SIGKILL");
    }
  });

  // A port of a bridge, a way out by two routers, and what isn't in the main table or leads nowhere.
  it("lists devices and routes, and sees changes", async () => {
    const ending = new AbortController();
    const changes = netlink.watchDevices(ending.signal)[Symbol.asyncIterator]();
    const change = changes.next();
    for (const line of [
      "link set lo up",
      "link add br0 type bridge",
      "link add veth0 type veth peer name veth1",
      "link set veth0 master br0",
      "link set br0 up",
      "link set veth1 up",
      "link set veth0 up",
      "addr add 192.0.2.7/24 dev veth1",
      "addr add 2001:db8::7/64 dev veth1 nodad",
      "route add 10.1.1.0/24 dev br0",
      "route add 10.1.2.0/24 via 192.0.2.9",
      "route add default nexthop via 192.0.2.8 nexthop via 192.0.2.9",
      "route add unreachable 10.1.3.0/24",
      "route add 10.1.4.0/24 dev br0 table 7",
      "-6 route add default via 2001:db8::9",
    ])
      tool("ip", ...line.split(" "));
    expect(await change).toEqual({ done: false, value: undefined });
    const devices = await netlink.devices();
    const names = new Map(devices.map(({ index, name: own }) => [index, own]));
    const reported = async (family: "IPv4" | "IPv6"): Promise<readonly string[]> =>
      (await netlink.routes(family))
        .map((one) => `${one.destination} ${names.get(one.device)}${one.hasGateway ? " by a router" : ""}`)
        .toSorted();
    expect(devices.map((one) => `${one.name} ${one.kind} ${names.get(one.master ?? 0) ?? ""} ${one.isLoopback}`)).toEqual([
      "lo   true",
      "br0 bridge  false",
      "veth1 veth  false",
      "veth0 veth br0 false",
    ]);
    expect([...(await reported("IPv4")), ...(await reported("IPv6")).filter((text) => !text.startsWith("fe80::"))]).toEqual([
      "0.0.0.0/0 veth1 by a router",
      "0.0.0.0/0 veth1 by a router",
      "10.1.1.0/24 br0",
      "10.1.2.0/24 veth1 by a router",
      "192.0.2.0/24 veth1",
      "2001:db8::/64 veth1",
      "::/0 veth1 by a router",
    ]);
    ending.abort();
    await drain(changes);
  });

  it("survives thousands of calls at once", async () => {
    tool("ip", "link", "set", "lo", "up");
    const generations = await Promise.all(Array.from({ length: 5_000 }, () => netlink.nftGeneration()));
    const lists = await Promise.all(Array.from({ length: 100 }, (_, index) => netlink.addresses(index % 2 === 0 ? "IPv4" : "IPv6")));
    expect([new Set(generations).size, new Set(lists.map((list) => JSON.stringify(list))).size]).toEqual([1, 2]);
  });
});

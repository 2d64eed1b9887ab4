// Run by netlink.test.ts in a network namespace of its own; prints what it saw as JSON.
import { systemClock } from "@turnout/core/process";
import { createSocket } from "node:dgram";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { ProxyError } from "@turnout/core";
import type { Clock, FlowFilter, IPFamily } from "@turnout/core";
import { NetlinkChannel } from "../netlink/channel.ts";
import { CT, dumpRequest, parseEntry } from "../netlink/conntrack/conntrack.ts";
import { createNetlink } from "../netlink/netlink.ts";
import { openMulticastSocket } from "../netlink/multicast-socket.ts";
import type { MulticastSocket } from "../netlink/multicast-socket.ts";
import { NftEventReader } from "../netlink/nft/nft-events.ts";
import type { NftEvent } from "../netlink/nft/nft-events.ts";
import { NETLINK } from "../netlink/socket.ts";
import type { NftElements, NftElementWrite } from "../nft-statement/nft-statement.ts";
import { REST_MS, watch } from "../netlink/watch.ts";
import type { WatchHandlers } from "../netlink/watch.ts";

const never = new AbortController().signal;
const real = systemClock();
/** Nobody rests here: a watch that the kernel did not wake would wait for days. */
const clock: Clock = { ...real, sleep: (ms, signal) => real.sleep(ms === REST_MS ? 1e9 : ms, signal) };
const netlink = createNetlink({ clock });

function tool(file: string, args: readonly string[], input = ""): string {
  return execFileSync(file, args, { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, LC_ALL: "C" } });
}

/** Another network namespace, for as long as its process lives. */
async function otherNamespace(): Promise<{ readonly pid: string; run(...lines: readonly string[]): void; end(): void }> {
  const holder = spawn("unshare", ["-n", "sh", "-c", "echo; exec sleep 60"], { stdio: ["ignore", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  const pid = String(holder.pid);
  return {
    pid,
    run: (...lines) => void lines.map((line) => tool("nsenter", ["-t", pid, "-n", "ip", ...line.split(" ")])),
    end: () => void holder.kill("SIGKILL"),
  };
}

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
  tool("sh", ["-c", "cat | conntrack --load-file -"], lines.join(""));
}

/** What is left, as `protocol destination:port<reply-source[ zone]`, sorted. */
function left(family: "ipv4" | "ipv6"): readonly string[] {
  const lines = tool("conntrack", ["-L", "-f", family]).split("\n");
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
  return netlink.deleteFlows(family, filters, never);
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

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async flowsIPv4() {
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
    return { deleted, left: left("ipv4"), leftIPv6: left("ipv6") };
  },

  async flowsIPv6() {
    insert([
      "udp fd00::1:1001>fd96::10:53<fd01::5:53",
      "udp fd00::2:1002>fd96::10:53<fd01::6:53",
      "udp fd00::3:1003>fd96::11:53<fd01::6:53",
      "udp fd00::5:1006>fd96::10:53<fd01::6:53 7",
      "tcp fd00::4:1004>fd96::10:53<fd01::6:53",
      "udp 10.0.0.1:1005>10.96.0.10:53<10.1.0.6:53",
    ]);
    const deleted = await forget("IPv6", [filter("fd96:0::10", 53, ["[fd01:0:0::5]:53"])]);
    return { deleted, left: left("ipv6"), leftIPv4: left("ipv4") };
  },

  async nodePorts() {
    tool("ip", ["link", "set", "lo", "up"]);
    tool("ip", ["addr", "add", "192.0.2.1/32", "dev", "lo"]);
    insert([
      "udp 10.0.0.1:1001>192.0.2.1:30053<10.1.0.5:53",
      "udp 10.0.0.2:1002>192.0.2.1:30053<10.1.0.6:53",
      "udp 10.0.0.3:1003>127.0.0.1:30053<10.1.0.6:53",
      "udp 10.0.0.4:1004>198.51.100.1:30053<198.51.100.1:30053",
      "udp 10.0.0.5:1005>192.0.2.1:30054<10.1.0.7:53",
      "udp 10.0.0.6:1006>192.0.2.1:30054<192.0.2.1:30054",
    ]);
    const deleted = await forget("IPv4", [filter("", 30053, ["10.1.0.5:53"]), filter("", 30054, [], ["10.1.0.7:53"])]);
    return { deleted, left: left("ipv4") };
  },

  async thousandsOfFilters() {
    const filters = Array.from({ length: 5_000 }, (_, index) => filter(`10.97.${index >> 8}.${index & 255}`, 53, ["10.1.0.5:53"]));
    const flows = Array.from({ length: 300 }, (_, index) => {
      const reply = index % 3 === 0 ? "10.1.0.5" : "10.1.0.6";
      return `udp 10.0.0.1:${2_000 + index}>10.97.0.${index % 250}:53<${reply}:53`;
    });
    insert([...flows, "udp 10.0.0.1:1999>10.98.0.1:53<10.1.0.6:53", "tcp 10.0.0.1:1998>10.97.0.1:53<10.1.0.6:53"]);
    const deleted = await forget("IPv4", filters);
    const rest = left("ipv4");
    return {
      deleted,
      kept: rest.filter((line) => line.endsWith("<10.1.0.5")).length,
      others: rest.filter((line) => !line.endsWith("<10.1.0.5")),
    };
  },

  // The kernel must do the filtering: what comes over the socket is counted.
  async kernelFilter() {
    const flows = Array.from({ length: 50 }, (_, index) => `udp 10.0.0.1:${2_000 + index}>10.97.0.${index}:53<10.1.0.6:53`);
    insert([...flows, "tcp 10.0.0.1:1998>10.97.0.1:53<10.1.0.6:53", "udp 10.0.0.1:1997>10.97.0.1:53<10.1.0.6:53 7"]);
    const channel = new NetlinkChannel(NETLINK.netfilter);
    const count = async (wanted: Parameters<typeof dumpRequest>[1]): Promise<number> => {
      let entries = 0;
      const end = await channel.dump(CT.dump, dumpRequest("IPv4", wanted), () => entries++);
      if (end.errno !== 0) throw new Error(`errno ${end.errno}`);
      return entries;
    };
    return [
      await count(undefined),
      await count({}),
      await count({ port: 53 }),
      await count({ port: 54 }),
      await count({ address: "10.97.0.1", port: 53 }),
    ];
  },

  // An entry that took the place of the one that was seen: same client, another endpoint.
  async replacedEntry() {
    insert(["udp 10.0.0.1:1001>10.96.0.10:53<10.1.0.6:53"]);
    const channel = new NetlinkChannel(NETLINK.netfilter);
    const requests: Buffer[] = [];
    await channel.dump(CT.dump, dumpRequest("IPv4", {}), (_, payload) => {
      const entry = parseEntry(payload, "IPv4");
      if (entry !== undefined) requests.push(entry.deleteRequest());
    });
    tool("conntrack", ["-F"]);
    insert(["udp 10.0.0.1:1001>10.96.0.10:53<10.1.0.5:53"]);
    return { errnos: await channel.requestMany(CT.delete, requests), left: left("ipv4") };
  },

  async nft() {
    const before = await netlink.nftGeneration();
    const ending = new AbortController();
    const events = netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
    tool("nft", ["add table ip turnout; add table inet other"]);
    tool("nft", ["add chain ip turnout c"]);
    const after = await netlink.nftGeneration();
    const seen = [await nextEvent(events), await nextEvent(events)];
    ending.abort();
    const end = await events.next();
    const commits = seen.map((event) =>
      event?.kind === "commit" ? { ...event, generation: event.generation - before, pid: event.pid > 0 } : event,
    );
    return { changed: after - before, commits, end };
  },

  async tables() {
    const none = await netlink.nftTables();
    tool("nft", [
      "add table ip nat; add chain ip nat PREROUTING; add chain ip nat KUBE-PROXY-CANARY; add chain ip nat X; add set ip nat S { type ipv4_addr; }; add table ip mangle; add chain ip mangle KUBE; add table inet filter; add chain inet filter INPUT",
    ]);
    const listed = await netlink.nftTables();
    return { none, listed: listed.map(({ family, table, ...rest }) => `${family} ${table} ${JSON.stringify(Object.values(rest))}`) };
  },

  // Elements go to the kernel as they are: nft shows them, others' commits are told and these aren't, and a refusal leaves nothing of its transaction.
  async writes() {
    tool("nft", ["-f", "-"], WRITTEN_TABLES);
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
    const said = {
      mixed: await write(
        { ...services, elements: [plain("10.96.0.1 . tcp . 80", "goto c", "shop/cart:http"), plain("10.96.0.1 . sctp . 65535", "drop")] },
        { ...endpoints, elements: [{ key: "10.96.0.1 . 80", place: 4_000_000_000, value: "10.1.0.5 . 8080", comment: "" }] },
        { ...ip, verb: "add", set: "ips", parts: ["address"], elements: [plain("255.255.255.255")] },
        { ...services, family: "ip6", elements: [plain("fd00:96::1 . udp . 53", "goto c")] },
      ),
      many: await write({ ...endpoints, elements: many }),
      again: await write({ ...services, elements: [plain("10.96.0.1 . sctp . 65535", "drop", "other")] }),
      otherwise: await write(
        { ...endpoints, elements: [plain("10.96.0.9 . 80 . 1", "10.1.0.5 . 80")] },
        { ...services, elements: [plain("10.96.0.1 . sctp . 65535", "goto c")] },
      ),
      missing: await write({ ...services, verb: "delete", elements: [plain("10.96.0.1 . sctp . 65535"), plain("10.96.0.3 . tcp . 80")] }),
      nowhere: await write({ ...services, table: "none", elements: [plain("10.96.0.1 . tcp . 81", "drop")] }),
      moved: await write(
        { ...endpoints, verb: "delete", elements: many.map(({ key, place }) => ({ key, place, value: "", comment: "" })) },
        { ...endpoints, elements: [{ key: "10.96.0.2 . 80", place: 0, value: "10.9.9.9 . 1", comment: "" }] },
      ),
    };
    const commits = (await netlink.nftGeneration()) - before;
    // It is there, or this fails.
    tool("nft", ["delete element ip t ips { 255.255.255.255 }"]);
    const reported = await nextEvent(events);
    ending.abort();
    const listed = ["ip t services", "ip t endpoints", "ip6 t services"].map((set) =>
      elementsIn(tool("nft", ["list", "map", ...set.split(" ")])),
    );
    return { said, commits, reported: reported?.kind === "commit" ? reported.process : reported, listed };
  },

  // More is committed than the socket can hold; the package `netlink` would abort the process here.
  async overrun() {
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
    const open = (): MulticastSocket => openMulticastSocket(NETLINK.netfilter, [7], { bufferBytes: 4096 });
    const events = watch(open, handlers, clock, ending.signal)[Symbol.asyncIterator]();
    const elements = Array.from({ length: 1_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`).join(", ");
    tool("nft", ["-f", "-"], `add table ip big\nadd set ip big s { type ipv4_addr; }\nadd element ip big s { ${elements} }\n`);
    const first = await nextEvent(events);
    tool("nft", ["add table ip afterwards"]);
    const second = await nextEvent(events);
    ending.abort();
    return { first: first?.kind, second: second?.kind === "commit" ? second.tables : second };
  },

  async addresses() {
    tool("ip", ["link", "set", "lo", "up"]);
    const ending = new AbortController();
    const changes = netlink.watchAddresses(ending.signal)[Symbol.asyncIterator]();
    const change = changes.next();
    tool("ip", ["link", "add", "veth0", "type", "veth", "peer", "name", "veth1"]);
    tool("ip", ["addr", "add", "192.0.2.7/24", "dev", "veth0"]);
    tool("ip", ["addr", "add", "192.0.2.8", "peer", "198.51.100.8", "dev", "veth0"]);
    tool("ip", ["addr", "add", "2001:db8:0:0::7/64", "dev", "veth0"]);
    const seen = await change;
    const listed = [await netlink.addresses("IPv4"), await netlink.addresses("IPv6")];
    ending.abort();
    return { seen, listed, ended: (await drain(changes)).done };
  },

  // A port of a bridge, a way out by two routers, and what isn't in the main table or leads nowhere.
  async devices() {
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
      tool("ip", line.split(" "));
    const seen = await change;
    const devices = await netlink.devices();
    const names = new Map(devices.map(({ index, name: own }) => [index, own]));
    const reported = async (family: "IPv4" | "IPv6"): Promise<readonly string[]> =>
      (await netlink.routes(family))
        .map((one) => `${one.destination} ${names.get(one.device)}${one.hasGateway ? " by a router" : ""}`)
        .toSorted();
    const routes = [...(await reported("IPv4")), ...(await reported("IPv6")).filter((text) => !text.startsWith("fe80::"))];
    ending.abort();
    return {
      seen,
      devices: devices.map((one) => `${one.name} ${one.kind} ${names.get(one.master ?? 0) ?? ""} ${one.isLoopback}`),
      routes,
      ended: (await drain(changes)).done,
    };
  },

  // The other end of a pair of devices is in another namespace, first down and then up, with addresses.
  async behind() {
    tool("ip", ["link", "set", "lo", "up"]);
    const pod = await otherNamespace();
    try {
      for (const line of [`link add veth0 type veth peer name eth0 netns ${pod.pid}`, "link set veth0 up", "link add br0 type bridge"])
        tool("ip", line.split(" "));
      const before = await reported();
      pod.run("link set lo up", "link set eth0 up", "addr add 10.1.0.5/32 dev eth0", "addr add fd00::5/128 dev eth0 nodad");
      return { before, after: await reported(), noOne: (await netlink.addressesIn(77, "IPv4")) ?? "unknown" };
    } finally {
      pod.end();
    }
    async function reported(): Promise<unknown> {
      const devices = await netlink.devices();
      const state = (one: string): string => {
        const { isUp, hasCarrier, namespace } = devices.find((device) => device.name === one) ?? { isUp: false, hasCarrier: false };
        return `${isUp} ${hasCarrier} ${namespace === undefined ? "here" : "elsewhere"}`;
      };
      const namespace = devices.find((device) => device.name === "veth0")?.namespace ?? -1;
      const behind = [...((await netlink.addressesIn(namespace, "IPv4")) ?? []), ...((await netlink.addressesIn(namespace, "IPv6")) ?? [])];
      return { veth0: state("veth0"), br0: state("br0"), behind: behind.filter((ip) => !ip.startsWith("fe80:")) };
    }
  },

  // A counter counts the packets of the rules that name it, and goes only when none does.
  async counters() {
    const name = "turnout_test_pkts";
    tool("ip", ["link", "set", "lo", "up"]);
    const before = await netlink.counterPackets(name);
    await netlink.createCounter(name);
    await netlink.createCounter(name);
    const fresh = await netlink.counterPackets(name);
    const rule = ["OUTPUT", "-p", "udp", "--dport", "9", "-m", "nfacct", "--nfacct-name", name];
    tool("iptables", ["-A", ...rule]);
    const socket = createSocket("udp4");
    for (let sent = 0; sent < 3; sent += 1) await new Promise((resolve) => socket.send("x", 9, "127.0.0.1", resolve));
    socket.close();
    const counted = await netlink.counterPackets(name);
    await netlink.deleteCounter(name);
    const used = await netlink.counterPackets(name);
    tool("iptables", ["-D", ...rule]);
    await netlink.deleteCounter(name);
    await netlink.deleteCounter(name);
    return { before: before ?? "none", fresh, counted, used, after: (await netlink.counterPackets(name)) ?? "none" };
  },

  // Without the guards the package aborts the process, or answers EBUSY.
  async manyAtOnce() {
    tool("ip", ["link", "set", "lo", "up"]);
    const generations = await Promise.all(Array.from({ length: 5_000 }, () => netlink.nftGeneration()));
    const lists = await Promise.all(Array.from({ length: 100 }, (_, index) => netlink.addresses(index % 2 === 0 ? "IPv4" : "IPv6")));
    return { generations: new Set(generations).size, lists: new Set(lists.map((list) => JSON.stringify(list))).size };
  },

  async refused() {
    const codes = [netlink.nftGeneration(), forget("IPv4", [filter("10.96.0.10", 53, [])])].map((promise) =>
      promise.then(String, (error: unknown) => (ProxyError.is(error) ? error.code : String(error))),
    );
    return Promise.all(codes);
  },
};

async function nextEvent(events: AsyncIterator<NftEvent, unknown>): Promise<NftEvent | undefined> {
  const result = await events.next();
  return result.done === true ? undefined : result.value;
}

/** Read on until the end; an event or two may still be waiting. */
async function drain(iterator: AsyncIterator<unknown>): Promise<IteratorResult<unknown>> {
  for (;;) {
    const result = await iterator.next();
    if (result.done === true) return result;
  }
}

const name = process.argv[2] ?? "";
const scenario = scenarios[name];
if (scenario === undefined) throw new Error(`no scenario "${name}"`);
process.stdout.write(JSON.stringify(await scenario()));

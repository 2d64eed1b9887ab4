// Run by ipvs/ipvs-kernel.test.ts in a user-mode Linux guest; prints what it saw as JSON.
import { spawn } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import { ProxyError } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { createRandom, pickOne } from "@turnout/core/testing";
import { FaultSwitches } from "@turnout/conformance";
import { createIpvs } from "@turnout/host/ipvs";
import { virtualServerName } from "@turnout/host/ipvs/model";
import type { IpvsListing, IpvsOperation, RealServer, VirtualServerKey, VirtualServerSettings } from "@turnout/host/ipvs/model";
import { createFakeSysctl } from "@turnout/host/testing";
import { attempt, connectToEcho, linesOf, sh } from "@turnout/house/vm";
import { serverName } from "../ipvs/fake-server.ts";
import { FakeIpvs } from "../ipvs/fake-ipvs.ts";

const never = new AbortController().signal;
const ipvs = createIpvs();

function messageOf(error: unknown): string {
  return ProxyError.is(error) ? error.message : String(error);
}

/** What ipvsadm shows, a line for each virtual and real server, without the counters of connections. */
function shown(): readonly string[] {
  return sh("ipvsadm -Sn").split("\n").filter(Boolean).toSorted();
}

function clear(): void {
  sh("ipvsadm -C");
}

function key(protocol: "TCP" | "UDP" | "SCTP", address: string, port: number): VirtualServerKey {
  return { family: address.includes(":") ? "IPv6" : "IPv4", protocol, address, port };
}

function withSettings(service: VirtualServerKey, more: Partial<VirtualServerSettings> = {}): VirtualServerKey & VirtualServerSettings {
  return { ...service, scheduler: "rr", flags: 0, timeoutSeconds: 0, clientPrefixLength: service.family === "IPv4" ? 32 : 128, ...more };
}

function add(service: VirtualServerKey, more: Partial<VirtualServerSettings> = {}): IpvsOperation {
  return { verb: "add-service", service: withSettings(service, more) };
}

function server(service: VirtualServerKey, address: string, port: number, weight: number = 1): IpvsOperation {
  return { verb: "add-server", service, server: { address, port, weight } };
}

async function change(...operations: readonly IpvsOperation[]): Promise<readonly string[]> {
  return (await ipvs.change(operations, never)).map((error) => (error === undefined ? "ok" : `${error.code} ${error.what}`));
}

/** The kernel's order is that of a hash. */
function inOrder({ virtualServers, firewallMarks }: IpvsListing): IpvsListing {
  const sorted = virtualServers.map((one) => ({
    ...one,
    realServers: one.realServers.toSorted((a, b) => (serverName(a) < serverName(b) ? -1 : 1)),
  }));
  return { virtualServers: sorted.toSorted((a, b) => (virtualServerName(a) < virtualServerName(b) ? -1 : 1)), firewallMarks };
}

const WEB = key("TCP", "10.96.0.1", 80);

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async everyKind() {
    const [dns, voice] = [key("UDP", "10.96.0.1", 53), key("SCTP", "fd00:96::1", 443)];
    const outcomes = await change(
      add(WEB),
      server(WEB, "10.1.0.1", 8080),
      server(WEB, "10.1.0.2", 8080, 0),
      add(dns, { scheduler: "mh", flags: 0x11, timeoutSeconds: 10_800 }),
      server(dns, "10.1.0.3", 53, 3),
      add(voice, { scheduler: "wrr", flags: 1, timeoutSeconds: 60 }),
      server(voice, "fd00:1::1", 8443),
      add(key("TCP", "fd00:96::1", 80)),
    );
    const lists = await Promise.all((["IPv4", "IPv6"] satisfies readonly IPFamily[]).map((family) => ipvs.list(family)));
    const few = await ipvs.realServers([dns, key("TCP", "10.96.0.1", 99), voice]);
    return { outcomes: [...new Set(outcomes)], lists: lists.map(inOrder), few, shown: shown() };
  },

  async edits() {
    await change(add(WEB), server(WEB, "10.1.0.1", 8080), server(WEB, "10.1.0.2", 8080, 5));
    const steps: (readonly string[])[] = [];
    const step = async (operation: IpvsOperation): Promise<void> => {
      steps.push([...(await change(operation)), ...shown()]);
    };
    await step({ verb: "edit-service", service: withSettings(WEB, { scheduler: "mh", flags: 0x11, timeoutSeconds: 100 }) });
    await step({ verb: "edit-service", service: withSettings(WEB) });
    await step({ verb: "edit-server", service: WEB, server: { address: "10.1.0.1", port: 8080, weight: 0 } });
    await step({ verb: "delete-server", service: WEB, server: { address: "10.1.0.1", port: 8080 } });
    await step({ verb: "delete-service", service: WEB });
    return steps;
  },

  async refusals() {
    const other = key("TCP", "10.96.0.1", 99);
    const six = key("TCP", "fd00:96::1", 80);
    await change(add(WEB), add(six), server(WEB, "10.1.0.1", 8080));
    const operations: readonly IpvsOperation[] = [
      add(WEB),
      { verb: "edit-service", service: withSettings(other) },
      { verb: "delete-service", service: other },
      add(other, { scheduler: "nope" }),
      { verb: "edit-service", service: withSettings(WEB, { scheduler: "nope" }) },
      add(other, { scheduler: "sixteen-letters-" }),
      add(key("TCP", "fd00:96::1", 81), { clientPrefixLength: 129 }),
      server(other, "10.1.0.1", 8080),
      server(WEB, "10.1.0.1", 8080),
      { verb: "edit-server", service: WEB, server: { address: "10.1.0.9", port: 8080, weight: 0 } },
      { verb: "delete-server", service: WEB, server: { address: "10.1.0.9", port: 8080 } },
      { verb: "delete-server", service: other, server: { address: "10.1.0.9", port: 8080 } },
      // A broadcast address of one of the host's networks, and others no connection can go to.
      server(WEB, "10.1.0.255", 8080),
      server(WEB, "224.0.0.1", 8080),
      server(WEB, "0.0.0.0", 8080),
      server(six, "fe80::1", 8080),
      server(six, "ff02::1", 8080),
      server(six, "::", 8080),
      // No route, the host itself, link-local in IPv4: taken.
      server(WEB, "203.0.113.1", 8080),
      server(six, "2001:db8::1", 8080),
      server(WEB, "127.0.0.1", 8080),
      server(WEB, "169.254.1.1", 8080),
      { verb: "delete-service", service: WEB },
    ];
    const outcomes = await change(...operations);
    const calledOff = await ipvs.change([add(other)], AbortSignal.abort());
    return { outcomes, calledOff: calledOff.map((error) => error?.message), shown: shown() };
  },

  async others() {
    sh(`ipvsadm -A -f 7 -s rr; ipvsadm -A -f 8 -6 -s rr; ipvsadm -a -f 7 -r 10.1.0.1 -g
      ipvsadm -A -t 10.96.0.9:80 -s sh -b sh-port -p 100 -M 255.255.0.0
      ipvsadm -a -t 10.96.0.9:80 -r 10.1.0.1:80 -i -x 10 -y 5; ipvsadm -a -t 10.96.0.9:80 -r 10.1.0.2:80 -g
      ipvsadm -A -u 10.96.0.9:80 -s rr -o`);
    return { IPv4: inOrder(await ipvs.list("IPv4")), IPv6: inOrder(await ipvs.list("IPv6")) };
  },

  async timeouts() {
    const before = await ipvs.timeouts();
    await ipvs.setTimeouts({ tcp: 0, tcpFin: 30, udp: 10 });
    const after = await ipvs.timeouts();
    const refused = await ipvs.setTimeouts({ tcp: 2 ** 31 - 1, tcpFin: 0, udp: 0 }).catch(messageOf);
    return { version: await ipvs.version(), before, after, refused };
  },

  // Many at once, one of them wrong, and a listing of the other family's loop meanwhile.
  async many() {
    const services = Array.from({ length: 300 }, (_, index) => key("TCP", `10.97.${index >> 8}.${index & 255}`, 80));
    const operations = services.flatMap((service, index) => [
      add(service),
      ...Array.from({ length: 3 }, (__, at) => server(service, `10.${2 + (index >> 8)}.${index & 255}.${at + 1}`, 80)),
      ...(index === 150 ? [add(service)] : []),
    ]);
    const changing = change(...operations);
    const [first, second] = await Promise.all([ipvs.list("IPv4"), ipvs.list("IPv4")]);
    const outcomes = await changing;
    const deleting = change(...services.map((service): IpvsOperation => ({ verb: "delete-service", service })));
    const emptied = await ipvs.list("IPv4");
    await deleting;
    const count = ({ virtualServers }: typeof first): string => {
      const names = new Set(virtualServers.map(({ address }) => address));
      return `${virtualServers.length} ${names.size} ${virtualServers.reduce((sum, { realServers }) => sum + realServers.length, 0)}`;
    };
    const refused = outcomes.flatMap((outcome, index) => (outcome === "ok" ? [] : [`${index} ${outcome}`]));
    return { refused, counts: [first, second, emptied].map(count) };
  },

  // What is seen of a change without a listing, in which part.
  async parts() {
    const services = [WEB, key("UDP", "10.96.0.1", 53), key("SCTP", "fd00:96::1", 443)];
    const [four, six] = ["10.1.0.1", "fd00:1::1"];
    await change(...services.flatMap((service) => [add(service), server(service, service.family === "IPv4" ? four : six, 8080)]));
    const look = async (): Promise<readonly Int32Array[]> => [
      ipvs.summary().checksums,
      await ipvs.contents("IPv4"),
      await ipvs.contents("IPv6"),
    ];
    const first = await look();
    const filled = first.map((checksums) => [...checksums.entries()].flatMap(([part, sum]) => (sum === 0 ? [] : [part])));
    const rest = (await look()).map((checksums, index) => isDeepStrictEqual(checksums, first[index]));
    const steps: string[] = [];
    let before = first;
    for (const operation of [
      { verb: "edit-server", service: WEB, server: { address: four, port: 8080, weight: 0 } },
      { verb: "delete-server", service: WEB, server: { address: four, port: 8080 } },
      { verb: "edit-server", service: key("SCTP", "fd00:96::1", 443), server: { address: six, port: 8080, weight: 3 } },
    ] satisfies readonly IpvsOperation[]) {
      await change(operation);
      const now = await look();
      steps.push(now.map((checksums, index) => checksums.findIndex((sum, part) => sum !== before[index]?.[part])).join());
      before = now;
    }
    const { virtualServers, realServers } = ipvs.summary();
    return { filled, rest, steps, counts: [virtualServers, realServers] };
  },

  // The fake and the kernel are given the same.
  async fake() {
    const random = createRandom(Number(process.argv[2] ?? 1));
    const fake = new FakeIpvs({ clock: systemClock(), faults: new FaultSwitches(), sysctl: createFakeSysctl({}) });
    const found: unknown[] = [];
    for (let step = 0; step < 60 && found.length < 5; step++) {
      const operations = Array.from({ length: 1 + Math.floor(random() * 12) }, () => randomOperation(random));
      const [theirs, ours] = [await ipvs.change(operations, never), await fake.change(operations, never)];
      for (const [index, operation] of operations.entries()) {
        const messages = [theirs[index]?.message, ours[index]?.message];
        if (messages[0] !== messages[1]) found.push({ operation, real: messages[0], fake: messages[1] });
      }
      for (const family of ["IPv4", "IPv6"] satisfies readonly IPFamily[]) {
        const [real, made] = [inOrder(await ipvs.list(family)), inOrder(await fake.list(family))];
        if (!isDeepStrictEqual(real, made)) found.push({ operations, real, made });
      }
    }
    return found;
  },

  // Connections through a virtual server, in both families, while their real server is taken away in this way and that.
  async draining() {
    const seen: Record<string, unknown> = {};
    for (const [family, vip, at] of [
      ["IPv4", "10.96.0.1", "10.2.0.2"],
      ["IPv6", "fd00:96::1", "fd00:2::2"],
    ] as const) {
      const service = key("TCP", vip, 80);
      const one = { address: at, port: 8080 };
      await change(add(service), server(service, at, 8080));
      const held = await connectToEcho(vip, 80);
      const states: string[] = [];
      const look = async (what: string, expected: "answer" | "silence"): Promise<void> => {
        const [servers = []] = await ipvs.realServers([service]);
        states.push(`${what}: ${servers.map(countsOf).join()}; talks: ${await held.talks(expected)}`);
      };
      await look("connected", "answer");
      await change({ verb: "edit-server", service, server: { ...one, weight: 0 } });
      await look("weight 0", "answer");
      states.push(`another: ${await attempt(vip, 80)}`);
      await change({ verb: "delete-server", service, server: one });
      await look("deleted", "silence");
      await change(server(service, at, 8080));
      await look("added again", "answer");
      held.end();
      const [counted] = await ipvs.counts(family);
      const bytes = [counted?.bytesIn, counted?.bytesOut].map((count = 0) => (count > 100 ? "some" : "none")).join();
      states.push(`counted at port ${counted?.port}: ${counted?.connections} connections, bytes in and out: ${bytes}`);
      seen[family] = states;
      clear();
    }
    return seen;
  },
};

const SERVICES = [key("TCP", "10.96.0.1", 80), key("UDP", "10.96.0.1", 80), key("TCP", "fd00:96::1", 80), key("SCTP", "fd00:96::1", 0)];
const ADDRESSES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: "10.1.0.1 10.1.0.2 127.0.0.1 169.254.1.1 224.0.0.1 255.255.255.255 0.0.0.1 203.0.113.1".split(" "),
  IPv6: "fd00:1::1 fd00:1::2 ::1 fe80::1 ff02::1 :: 2001:db8::1".split(" "),
};

function randomOperation(random: () => number): IpvsOperation {
  const service = pickOne(SERVICES, random);
  const scheduler = pickOne(["rr", "wrr", "mh", "sh", "nope", "a-name-too-long-"], random);
  const flags = pickOne([0, 1, 0x11, 0x10], random);
  const clientPrefixLength = random() < 0.8 ? (service.family === "IPv4" ? 32 : 128) : pickOne([0, 24, 129], random);
  // Of IPv4 there is only what fits a mask.
  const settings = { scheduler, flags, timeoutSeconds: pickOne([0, 100], random), clientPrefixLength };
  const prefixed = service.family === "IPv4" && clientPrefixLength > 32 ? { ...settings, clientPrefixLength: 16 } : settings;
  const one = { address: pickOne(ADDRESSES[service.family], random), port: pickOne([80, 8080, 0], random) };
  const weight = pickOne([0, 1, 100], random);
  const roll = random();
  if (roll < 0.2) return { verb: "add-service", service: { ...service, ...prefixed } };
  if (roll < 0.3) return { verb: "edit-service", service: { ...service, ...prefixed } };
  if (roll < 0.36) return { verb: "delete-service", service };
  if (roll < 0.7) return { verb: "add-server", service, server: { ...one, weight } };
  return roll < 0.85 ? { verb: "edit-server", service, server: { ...one, weight } } : { verb: "delete-server", service, server: one };
}

function countsOf({ weight, activeConnections, inactiveConnections }: RealServer): string {
  return `weight ${weight}, ${activeConnections} active, ${inactiveConnections} inactive`;
}

/** What is said to a process that may not administer the network. */
async function withoutRights(): Promise<string> {
  const list = `import { createIpvs } from "${import.meta.resolve("@turnout/host/ipvs")}";
    createIpvs().list("IPv4").catch((error) => console.log(error.message)).then(() => process.exit(0));`;
  const node = [process.execPath, ...process.execArgv, "--input-type=module-typescript", "-e", list];
  const child = spawn("setpriv", ["--bounding-set=-net_admin", "--inh-caps=-net_admin", ...node], { stdio: ["ignore", "pipe", "inherit"] });
  return await linesOf(child)();
}

/** client (10.3.0.2) - this host - server (10.2.0.2), which echoes on port 8080. */
async function setUp(): Promise<void> {
  sh(`ip link add d0 type dummy; ip link set d0 up; ip addr add 10.1.0.254/24 dev d0
    ip addr add 10.96.0.1/32 dev d0; ip addr add fd00:96::1/128 dev d0 nodad
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.vs.conntrack=1
    for pair in server:2 client:3; do
      name=\${pair%:*} net=\${pair#*:}
      ip netns add $name; ip link add v$net type veth peer name eth0 netns $name
      ip addr add 10.$net.0.1/24 dev v$net; ip addr add fd00:$net::1/64 dev v$net nodad; ip link set v$net up
      ip -n $name addr add 10.$net.0.2/24 dev eth0; ip -n $name addr add fd00:$net::2/64 dev eth0 nodad
      ip -n $name link set lo up; ip -n $name link set eth0 up
      ip -n $name route add default via 10.$net.0.1; ip -n $name -6 route add default via fd00:$net::1
    done`);
  const code = "require('net').createServer((socket)=>socket.on('error',()=>{}).pipe(socket)).listen(8080,'::',()=>console.log('up'))";
  const echo = spawn("ip", ["netns", "exec", "server", process.execPath, "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  echo.unref();
  await linesOf(echo)();
}

// A kernel that has the module loads it when it is asked for: here none can be loaded at first.
const loader = sh("cat /proc/sys/kernel/modprobe");
sh("echo /bin/false >/proc/sys/kernel/modprobe");
const results: Record<string, unknown> = { absent: await ipvs.list("IPv4").catch(messageOf) };
sh(`echo ${loader} >/proc/sys/kernel/modprobe`);
sh("modprobe -a ipv6 ip_vs ip_vs_rr ip_vs_wrr ip_vs_mh ip_vs_sh dummy veth nf_conntrack");
results["noRights"] = await withoutRights();
await setUp();
for (const [name, scenario] of Object.entries(scenarios)) {
  clear();
  results[name] = await scenario();
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));

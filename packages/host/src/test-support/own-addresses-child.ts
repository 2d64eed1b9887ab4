// Run by addresses/own-addresses-kernel.test.ts in a user-mode Linux guest; prints what it saw as JSON.
import { createServer } from "node:net";
import { once } from "node:events";
import type { IPFamily } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { Mutex } from "../netlink/mutex.ts";
import { OwnAddresses } from "../addresses/own-addresses.ts";
import { createExec } from "../exec/exec.ts";
import { createNetlink } from "../netlink/netlink.ts";
import { attempt, sh } from "@turnout/house/vm";

const { signal } = new AbortController();
const DEVICE = "kube-ipvs0";

/** From a neighbour that asks for the address itself, and from one that sends to this host. */
async function reached(): Promise<Readonly<Record<string, string>>> {
  const seen: Record<string, string> = {};
  for (const [family, net, gateway, address] of [
    ["IPv4", "10.96.0.0/16", "10.3.0.1", "10.96.0.1"],
    ["IPv6", "fd00:96::/64", "fd00:3::1", "fd00:96::1"],
  ] as const) {
    for (const [way, route] of [
      ["asked for", "dev eth0"],
      ["sent to this host", `via ${gateway}`],
    ] as const) {
      sh(`ip netns exec client ip route replace ${net} ${route}; ip -n client neigh flush dev eth0`);
      seen[`${family} ${way}`] = await attempt(address, 80);
    }
    sh(`ip netns exec client ip route del ${net}`);
  }
  return seen;
}

function onDevice(): readonly string[] {
  const lines = sh(`ip -o addr show dev ${DEVICE}`).split("\n");
  return lines.map((line) => /inet6? (.*?) *\\/.exec(line)?.[1]?.replace(/ kube-ipvs0$/, "") ?? line).toSorted();
}

sh(`ip link add v3 type veth peer name eth0; ip netns add client; ip link set eth0 netns client
  ip addr add 10.3.0.1/24 dev v3; ip addr add fd00:3::1/64 dev v3 nodad; ip link set v3 up
  ip -n client addr add 10.3.0.2/24 dev eth0; ip -n client addr add fd00:3::2/64 dev eth0 nodad; ip -n client link set eth0 up; ip -n client link set lo up`);
const server = createServer((socket) => socket.destroy()).listen(80, "::");
await once(server, "listening");
const world = { exec: createExec(), netlink: createNetlink({ clock: systemClock() }) };
const mutex = new Mutex();
const own = (family: IPFamily): OwnAddresses => new OwnAddresses(world, { name: DEVICE, hint: "rename it" }, family, mutex);
const results: Record<string, unknown> = {};

await own("IPv4").add(["10.96.0.1"], signal);
await own("IPv6").add(["fd00:96::1"], signal);
results["made"] = { addresses: onDevice(), reached: await reached() };
sh("sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2");
results["strict"] = await reached();
await own("IPv4").removeAll(signal);
await own("IPv6").removeAll(signal);
results["left"] = sh(`ip link show dev ${DEVICE} 2>/dev/null | wc -l`);

// What a kube-proxy leaves: the device down, the addresses of global scope.
sh(
  `ip link add ${DEVICE} type dummy; ip addr add 10.96.0.1/32 dev ${DEVICE}; ip addr add 10.96.0.9/32 dev ${DEVICE}; ip addr add fd00:96::1/128 dev ${DEVICE}`,
);
results["kubeProxys"] = { addresses: onDevice(), reached: await reached() };
const listed = [await own("IPv4").list(), await own("IPv6").list()];
await own("IPv4").add(["10.96.0.1", "10.96.0.2"], signal);
await own("IPv6").add(["fd00:96::1"], signal);
await own("IPv4").remove(["10.96.0.9"], signal);
const source = sh("ip -n client route get 10.3.0.1 >/dev/null; ip route get 10.3.0.2 | grep -o 'src [^ ]*'");
results["adopted"] = { listed, addresses: onDevice(), reached: await reached(), source };
const many = Array.from({ length: 5_000 }, (_, index) => `10.97.${index >> 8}.${index & 255}`);
const startMs = performance.now();
await own("IPv4").add(many, signal);
const addedMs = performance.now() - startMs;
const count = (await own("IPv4").list()).length;
process.stderr.write(`5,000 addresses added in ${Math.round(addedMs)} ms\n`);
results["many"] = count;
process.stdout.write(JSON.stringify(results), () => process.exit(0));

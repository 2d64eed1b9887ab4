// The kit's stage in the kernel: node1 and its pods as network namespaces, a cgroup and a bpffs, for one host after another.
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PLACES, STAGE_NODE, UPLINK } from "@turnout/conformance";
import type { HostAddress, StagePeer } from "@turnout/conformance";
import { createBpf, networkNamespaceCookie } from "@turnout/host/bpf";
import type { LoadedObject } from "@turnout/host/bpf";
import { encodeCookie } from "../bytes/layout.ts";
import { NFT_TABLE } from "../packets/nft-table.ts";
import { c, NETWORK, sure } from "./calls.ts";
import { ConntrackTable } from "./conntrack-table.ts";
import { Place, STAYS_MARK } from "./place.ts";
import { ReusedObjects } from "./reused-objects.ts";

/** The address of all of node1's devices: a packet to it is the node's. */
export const DEVICE_ADDRESS = "02:00:00:00:00:01";

/** Packets of the place's own processes leave by this device, wherever they go to. */
const WAY_OUT = "eth0";
const OWN_PACKETS_TABLE = 100;
const WAY_OUT_ROUTES: readonly string[] = [`default dev ${WAY_OUT}`, `default dev ${WAY_OUT} table ${OWN_PACKETS_TABLE}`];

const OTHER_TABLE = "add table inet somebody\nadd chain inet somebody guard { type filter hook input priority 0; policy accept; }\n";
/** Where it all is; `cgroup` is a folder of this process's own. */
export interface StageFolders {
  readonly cgroup: string;
  /** Of a tmpfs. */
  readonly folder: string;
}

/** node1 and its pods, ready to be asked. */
export class KernelStage {
  /** Where this process is. */
  static #current: KernelStage | undefined;
  static #uses = 0;
  /** Of all uses of stages, the last one of this. */
  usedAt = 0;
  readonly name: string;
  readonly cgroup: string;
  readonly bpffs: string;
  readonly places: ReadonlyMap<string, Place>;
  readonly objects: ReusedObjects = new ReusedObjects(createBpf());
  readonly conntrack: ConntrackTable;
  /** node1's devices, by name. */
  readonly devices: ReadonlyMap<string, number>;
  /** Of node1's network namespace, as bytes in hexadecimal. */
  readonly namespaceCookie: string;
  readonly #namespace: number;
  /** Those of the loopback device the kernel gives itself. */
  #addresses = new Set(["127.0.0.1/8 dev lo", "::1/128 dev lo"]);

  constructor(name: string, { cgroup, folder }: StageFolders) {
    this.name = name;
    this.cgroup = join(cgroup, name);
    this.bpffs = join(folder, `${name}-bpf`);
    mkdirSync(this.cgroup, { recursive: true });
    mkdirSync(this.bpffs);
    run("mount", ["-t", "bpf", "bpf", this.bpffs]);
    const peers = PLACES.filter(({ node }) => node === STAGE_NODE);
    for (const { name: place } of peers) run("ip", ["netns", "add", this.#nameOf(place)]);
    for (const peer of peers) this.#furnish(peer);
    this.#namespace = openSync(pathOf(this.#nameOf(STAGE_NODE)), "r");
    this.enter();
    // The route to an endpoint tells the source address only where packets are forwarded.
    for (const way of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeFileSync(`/proc/sys/net/${way}`, "1");
    this.devices = devicesHere();
    this.conntrack = new ConntrackTable();
    this.namespaceCookie = encodeCookie(String(networkNamespaceCookie())).toString("hex");
    this.places = new Map(peers.map((peer) => [peer.name, this.#open(peer)]));
    run("nft", ["-f", "-"], OTHER_TABLE);
  }

  /** Have what somebody else has, where it isn't there: a map, and programs at the same cgroup and the same device, with pins whose names are much like ours. */
  furnishExternal(somebody: LoadedObject): void {
    this.enter();
    const [bpf, folder] = [createBpf(), join(this.bpffs, "turnout-of-somebody")];
    if (bpf.pins(this.bpffs).filter(({ path }) => path.startsWith(`${folder}/`)).length === 3) return;
    bpf.removePins(folder);
    const map = bpf.createMap({ name: "services", type: "hash", keySize: 4, valueSize: 4, maxEntries: 8 });
    map.update(Buffer.from([1, 2, 3, 4]), Buffer.from([5, 6, 7, 8]));
    const place = { ifindex: this.devices.get(UPLINK) ?? 0, direction: "ingress" } as const;
    const atDevice = bpf.attachTc(somebody.program("somebody_in"), place, { priority: 1, handle: 1 });
    if (atDevice.kind !== "tcx") throw new Error("the kernel has tcx: examine() saw to it");
    const atCgroup = bpf.attachToCgroup(somebody.program("somebody_conn4"), this.cgroup, "connect4");
    for (const [name, one] of Object.entries({ services: map, conn4: atCgroup, in: atDevice.link })) {
      one.pin(join(folder, name));
      one.close();
    }
  }

  /** The tables of nft that aren't the backend's. */
  otherTables(): readonly string[] {
    this.enter();
    return run("nft", ["list", "tables"])
      .split("\n")
      .filter((line) => line !== "" && line !== `table inet ${NFT_TABLE}`);
  }

  /** Have this process be one of node1's, in its network namespace and its cgroup. */
  enter(): void {
    this.usedAt = ++KernelStage.#uses;
    if (KernelStage.#current === this) return;
    KernelStage.#current = this;
    sure(c.setns(this.#namespace, NETWORK), "setns");
    writeFileSync(join(this.cgroup, "cgroup.procs"), String(process.pid));
  }

  /** The cgroup's number. */
  get cgroupId(): bigint {
    return statSync(this.cgroup, { bigint: true }).ino;
  }

  /** Where the network namespaces of its places are. */
  get namespaces(): readonly string[] {
    return [...this.places.keys()].map((place) => pathOf(this.#nameOf(place)));
  }

  /** Give node1 these addresses, and no others. */
  setAddresses(addresses: readonly HostAddress[]): void {
    const wanted = new Set(addresses.map(({ ip, prefixLength, link }) => `${ip}/${prefixLength} dev ${link}`));
    const lines = [
      ...[...this.#addresses].filter((one) => !wanted.has(one)).map((one) => `addr del ${one}`),
      ...[...wanted].filter((one) => !this.#addresses.has(one)).map((one) => `addr add ${one}${one.includes(":") ? " nodad" : ""}`),
    ];
    // With the last address of a device the kernel forgets its routes.
    if (lines.length > 0) this.#ip(STAGE_NODE, [...lines, ...WAY_OUT_ROUTES.map((route) => `route replace ${route}`)]);
    this.#addresses = wanted;
  }

  /** Take away what a host has left, for another one. */
  reset(): void {
    this.enter();
    createBpf().removePins(join(this.bpffs, "turnout"));
    run("nft", ["-f", "-"], `add table inet ${NFT_TABLE}\ndelete table inet ${NFT_TABLE}\n`);
    this.objects.reset();
  }

  close(): void {
    for (const place of this.places.values()) place.close();
    this.conntrack.close();
    createBpf().removePins(join(this.bpffs, "turnout"));
    this.objects.close();
    closeSync(this.#namespace);
    run("umount", [this.bpffs]);
  }

  #open({ name, kind, addresses }: StagePeer): Place {
    const namespace = pathOf(this.#nameOf(name));
    const [isNode, own] = [kind === "node", Object.values(addresses)];
    const owns = (address: string): boolean => (isNode ? this.#isOwn(address) : own.includes(address));
    return new Place({ namespace, wayOut: WAY_OUT, owns, isNode });
  }

  #isOwn(address: string): boolean {
    return [...this.#addresses].some((one) => one.startsWith(`${address}/`));
  }

  #nameOf(place: string): string {
    return `${this.name}-${place}`;
  }

  #ip(place: string, lines: readonly string[], ...options: readonly string[]): void {
    run("ip", ["-n", this.#nameOf(place), ...options, "-batch", "-"], lines.join("\n"));
  }

  #furnish({ name, kind, addresses, link }: StagePeer): void {
    const own =
      kind === "pod" ? [`addr add ${addresses.IPv4}/32 dev ${WAY_OUT}`, `addr add ${addresses.IPv6}/128 dev ${WAY_OUT} nodad`] : [];
    this.#ip(name, [
      "link set lo up",
      // Its other end gets packets that are for another device, and drops them.
      `link add ${WAY_OUT} address ${DEVICE_ADDRESS} type veth peer name nowhere`,
      "link set nowhere addrgenmode none arp off up",
      `link set ${WAY_OUT} addrgenmode none arp off up`,
      ...own,
    ]);
    // What processes here send is looked at on its way out, even what would stay here.
    for (const family of ["-4", "-6"])
      this.#ip(
        name,
        [
          ...WAY_OUT_ROUTES.map((route) => `route add ${route}`),
          "rule add pref 20 lookup local",
          `rule add pref 5 fwmark ${STAYS_MARK} lookup local`,
          `rule add pref 10 iif lo lookup ${OWN_PACKETS_TABLE}`,
          "rule del pref 0",
        ],
        family,
      );
    if (kind === "pod")
      this.#ip(STAGE_NODE, [
        `link add ${link} address ${DEVICE_ADDRESS} type veth peer name node1 netns ${this.#nameOf(name)}`,
        `link set ${link} addrgenmode none up`,
        `route add ${addresses.IPv4}/32 dev ${link}`,
        `route add ${addresses.IPv6}/128 dev ${link}`,
      ]);
  }
}

function pathOf(namespace: string): string {
  return `/run/netns/${namespace}`;
}

/** Devices of the network namespace that this process is in, by name. */
function devicesHere(): ReadonlyMap<string, number> {
  const devices = JSON.parse(run("ip", ["-j", "link"])) as readonly { readonly ifname: string; readonly ifindex: number }[];
  return new Map(devices.map(({ ifname, ifindex }) => [ifname, ifindex]));
}

/** @throws {Error} with what the program says. */
function run(file: string, args: readonly string[], input = ""): string {
  return execFileSync(file, args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "pipe"], maxBuffer: 1 << 26 });
}

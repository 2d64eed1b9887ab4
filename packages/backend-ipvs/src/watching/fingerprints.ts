import type { IPFamily } from "@turnout/core/backend";
import type { NftEvent, FingerprintChanges, Fingerprints } from "@turnout/host";
import type { IptablesTool } from "@turnout/host/iptables";
import type { TableName } from "@turnout/host/iptables/text";
import { partOf, PARTS } from "@turnout/host/ipvs/model";
import { isOwnChain, JUMPS, SHARED_CHAINS } from "../layout.ts";
import { DEVICE, setName } from "../names.ts";
import { readKey } from "../objects.ts";
import type { IpvsObject } from "../objects.ts";
import { ownSets } from "../observe.ts";
import type { Step } from "../plan.ts";
import { setNameOf } from "../sets.ts";
import type { IpvsWorld } from "../world.ts";

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];
/** So many pages of `/proc/net/ip_vs` are read often in IPv6: some 200 lines. */
const HEAD_PAGES = 4;
/** A plan of more objects is taken to write to all parts. */
const OBJECTS_MAX = 1_000;

/** What is looked at. */
export interface FingerprintSources {
  readonly family: IPFamily;
  readonly world: Pick<IpvsWorld, "netlink" | "ipvs">;
  readonly tool: Pick<IptablesTool, "variant">;
  /** How many addresses our device has. */
  readonly bound: BoundCount;
}

/** Counts the addresses on our device anew after it heard that some have changed, as the kernel tells of that. */
export class BoundCount {
  #count: number | undefined;
  #changes = 0;

  /** Some may have changed. */
  forget(): void {
    this.#count = undefined;
    this.#changes += 1;
  }

  /** At once where they were counted since. */
  read(netlink: Pick<IpvsWorld["netlink"], "addresses">, family: IPFamily): number | Promise<number> {
    return this.#count ?? this.#recount(netlink, family);
  }

  async #recount(netlink: Pick<IpvsWorld["netlink"], "addresses">, family: IPFamily): Promise<number> {
    const changes = this.#changes;
    const all = await netlink.addresses(family);
    const count = all.filter(({ link }) => link === DEVICE).length;
    if (changes === this.#changes) this.#count = count;
    return count;
  }
}

/**
 * Read what the kernel tells in a few calls: how many virtual and real servers there are, with a digest of their settings in parts; addresses on our
 * device; how much tables of legacy iptables hold.
 *
 * Shape: at once, unless addresses have to be counted: so nothing else that the process does counts as the look's.
 * Edges: addresses and weights of real servers, and virtual servers of IPv6, are in {@link readContents} only. Of the latter the first pages of the
 * kernel's list say whether there are any: so `ipvsadm -C` is seen at once.
 */
export function readServers({ family, world, tool, bound }: FingerprintSources): Fingerprints | Promise<Fingerprints> {
  const { netlink, ipvs } = world;
  const fingerprints = new Map<string, string>();
  if (tool.variant === "legacy") {
    for (const table of TABLES) {
      const info = netlink.legacyTableInfo(family, table);
      if (info !== undefined) fingerprints.set(`table ${table}`, [info.entries, info.bytes, ...info.offsets].join(" "));
    }
  }
  if (family === "IPv4") {
    const { virtualServers, realServers, checksums } = ipvs.summary();
    fingerprints.set("virtual servers", String(virtualServers));
    fingerprints.set("real servers", String(realServers));
    addParts(fingerprints, (part) => `settings ${part}`, checksums);
  }
  const count = bound.read(netlink, family);
  const withCount = (addresses: number): Fingerprints => fingerprints.set("addresses", String(addresses));
  if (family === "IPv6")
    return ipvs.contents(family, HEAD_PAGES).then(async (head) => {
      fingerprints.set(ANY_FINGERPRINT, head.some((digest) => digest !== 0) ? "some" : "none");
      return withCount(await count);
    });
  return typeof count === "number" ? withCount(count) : count.then(withCount);
}

/** Count the members of some of our sets. The kernel goes through them. */
export async function readSets({ world }: Pick<FingerprintSources, "world">, names: Iterable<string>): Promise<Fingerprints> {
  const sizes = await world.netlink.setSizes([...names]);
  return new Map(Array.from(sizes, ([name, size]) => [setFingerprint(name), String(size)]));
}

/** Read what takes long: a digest of all virtual servers with their real servers and weights, in parts, and how many members each of our sets has. */
export async function readContents({ family, world }: Pick<FingerprintSources, "family" | "world">): Promise<Fingerprints> {
  const fingerprints = new Map(await readSets({ world }, ownSets(family)));
  addParts(fingerprints, contentsOf, await world.ipvs.contents(family));
  return fingerprints;
}

/** The sets that have members, by the signs of {@link readContents}, but for the largest, which has all endpoints: they are looked at often. Pure. */
export function filledSets(fingerprints: Fingerprints, family: IPFamily): readonly string[] {
  const largest = setName("KUBE-LOOP-BACK", family);
  return ownSets(family).filter((name) => name !== largest && (fingerprints.get(setFingerprint(name)) ?? "0") !== "0");
}

/** The sign of whether there are virtual servers. */
const ANY_FINGERPRINT = "virtual servers of IPv6";

/** Whether {@link readServers} found no virtual server: `ipvsadm -C` may have run while we wrote. Pure. */
export function areServersGone(fingerprints: Fingerprints): boolean {
  return fingerprints.get(ANY_FINGERPRINT) === "none" || fingerprints.get("virtual servers") === "0";
}

/** The sign of how many members a set has. */
export function setFingerprint(name: string): string {
  return `set ${name}`;
}

function addParts(fingerprints: Map<string, string>, fingerprintOf: (part: number) => string, checksums: Int32Array): void {
  for (const [part, digest] of checksums.entries()) if (digest !== 0) fingerprints.set(fingerprintOf(part), String(digest));
}

/** Which signs of {@link readContents} steps can change; undefined: any. Pure. */
export function writtenContents(steps: readonly Step[]): ReadonlySet<string> | undefined {
  const objects = steps.flatMap(objectsOf);
  if (objects.length > OBJECTS_MAX) return undefined;
  return new Set(
    objects.flatMap((object) => {
      if (object.kind === "service" || object.kind === "server") return [contentsOf(partOf(readKey(object.key)))];
      return object.kind === "entry" ? [setFingerprint(setNameOf(object))] : [];
    }),
  );
}

function objectsOf(step: Step): readonly IpvsObject[] {
  switch (step.do) {
    case "serve":
      return step.changes.map(({ object }) => object);
    case "drain":
      return step.servers.map(({ object }) => object);
    case "strip":
      return step.servers;
    case "withdraw":
      return step.services;
    case "fill":
    case "empty":
      return step.entries;
    default:
      return [];
  }
}

/** The sign of what a part of the virtual servers holds. */
export function contentsOf(part: number): string {
  return `contents ${part}`;
}

/** What signs, or a commit, say was touched. */
export interface Touched {
  readonly tables: ReadonlySet<TableName>;
  /** Parts of the virtual servers. */
  readonly parts: ReadonlySet<number>;
  /** Sets, each with whether it has members, or undefined where it is gone. */
  readonly sets: ReadonlyMap<string, boolean | undefined>;
  readonly addresses: boolean;
}

/** Sort what has changed. Pure. */
export function touchedBy(changes: FingerprintChanges): Touched {
  const [tables, parts, sets] = [new Set<TableName>(), new Set<number>(), new Map<string, boolean | undefined>()];
  for (const [sign, { now }] of changes) {
    const [kind, name = ""] = sign.split(" ");
    if (sign === ANY_FINGERPRINT) for (let part = 0; part < PARTS; part += 1) parts.add(part);
    else if (kind === "table") tables.add(name as TableName);
    else if (kind === "settings" || kind === "contents") parts.add(Number(name));
    else if (kind === "set") sets.set(name, now === undefined ? undefined : now !== "0");
  }
  return { tables, parts, sets, addresses: changes.has("addresses") };
}

/** Say what has changed, for people; the kernel doesn't know by whom. Pure. */
export function explainFingerprints(changes: FingerprintChanges): string {
  const number = (text: string | undefined): string => text?.split(" ")[0] ?? "none";
  const hasCount = changes.has("virtual servers") || changes.has("real servers");
  const texts = Array.from(changes, ([sign, { before, now }]): string | undefined => {
    const [kind, name] = sign.split(" ");
    if (kind === "contents") return "real servers, or their weights";
    if (kind === "settings") return hasCount ? undefined : "virtual servers, as many as before";
    const what =
      kind === "table"
        ? `rules of table ${name}`
        : kind === "set"
          ? `members of set ${name}`
          : kind === "addresses"
            ? `addresses on ${DEVICE}`
            : sign;
    return `${what} (${number(now)} instead of ${number(before)})`;
  });
  const reported = [...new Set(texts.filter((text) => text !== undefined))];
  return `somebody changed ${reported.slice(0, 4).join(", ")}${reported.length > 4 ? ` and ${reported.length - 4} more` : ""}; the kernel does not tell by whom`;
}

/** Say which of our tables somebody else's commit touched, if it touched chains of ours. Pure. */
export function tablesTouched(event: Extract<NftEvent, { kind: "commit" }>, family: IPFamily): ReadonlySet<TableName> {
  const ip = family === "IPv4" ? "ip" : "ip6";
  const isOurs = (full: string, chain: string): boolean =>
    TABLES.some(
      (table) =>
        full === `${ip} ${table}` &&
        (SHARED_CHAINS[table].includes(chain) ||
          isOwnChain(table, chain) ||
          JUMPS.some((jump) => jump.table === table && jump.from === chain)),
    );
  const changes = event.changes();
  const isTouched = changes === undefined || changes.some(({ table, kind, name }) => kind === "table" || isOurs(table, name));
  return new Set(isTouched ? TABLES.filter((table) => event.tables.includes(`${ip} ${table}`)) : []);
}

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CAUSES, FAMILIES, hostPort, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { parse } from "yaml";
import type { Site } from "../site.ts";
import type { TestService, Way } from "../services.ts";
import { HOST_PORT } from "../site.ts";
import { FORWARDED, KINDS } from "./fault.ts";
import type { Fault, FaultKind, FaultQuestion, HealthyCase, HealthyVariant } from "./fault.ts";

const HOME = new URL("cases/", import.meta.url);
const WRITER = fileURLToPath(new URL("../../bench/healing/ebpf-hand.ts", import.meta.url));
const KEYS: ReadonlySet<string> = new Set(
  (
    "name culprits ask inject fix at backends names step note unjudged connections extraFlags isStopped command " +
    "service endpoints families object slices hasNoService"
  ).split(" "),
);

/** What cases name: Services by their names, and places. */
export interface CaseWorld {
  readonly site: Pick<Site, "place">;
  readonly services: Readonly<Record<string, Pick<TestService, "target">>>;
  readonly backend: string;
  /** Flags of the proxy on node1. */
  readonly flags: readonly string[];
}

/** A case as it is written: `ask.to` is `SERVICE WAY FAMILY` or an address and a port. */
type RawFault = Omit<Fault, "kind" | "own" | "ask" | "culprits"> & {
  readonly culprits?: Fault["culprits"];
  readonly ask: Omit<FaultQuestion, "to" | "port"> & { readonly to: string };
};

interface CaseFile {
  readonly kind: FaultKind;
  readonly defaults?: Partial<RawFault>;
  /** Texts that its cases name as `{{NAME}}`. */
  readonly fragments?: Readonly<Record<string, string>>;
  readonly cases: readonly RawFault[];
}

/**
 * All cases that a backend can have, with addresses in place of names. In their texts `{{web}}` is a Service's address, `{{web nodePort port}}` one of its
 * ports, `{{pod-1-1 IPv6}}` a place's address, and `{{hex …}}` the same as eBPF's maps have it.
 * @throws {Error} for a case that can't be read, or names what there is not.
 */
export function faultsOf(world: CaseWorld): readonly Fault[] {
  return casesOf(world, (one) => isPlayable(one, world.backend));
}

/** All cases of API objects, each in its place, whichever backend can have them. @throws as {@link faultsOf}. */
export function objectFaults(world: CaseWorld): readonly Fault[] {
  return casesOf(world, (_, kind) => kind === "objects");
}

function casesOf(world: CaseWorld, isWanted: (raw: RawFault, kind: FaultKind) => boolean): readonly Fault[] {
  const files = readdirSync(HOME).map((name) => parse(readFileSync(new URL(name, HOME), "utf8")) as CaseFile);
  const sorted = files.toSorted((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
  return sorted.flatMap(({ kind, defaults, fragments = {}, cases }) =>
    cases.flatMap((one, index): readonly Fault[] => {
      const raw = { ...defaults, ...one };
      check(raw);
      if (!isWanted(raw, kind)) return [];
      const services = { ...world.services, own: ownTarget(world, index + 1) };
      const expanded = expand(raw, { ...world, services }, fragments) as RawFault;
      const own = FAMILIES.map((family) => services.own.target("clusterIP", family).address);
      return [{ culprits: [], ...expanded, kind, own, ask: { ...expanded.ask, ...targetOf(expanded.ask.to, services) } }];
    }),
  );
}

function check({ name, culprits = [], ...rest }: RawFault): void {
  const unknown = [...Object.keys(rest).filter((key) => !KEYS.has(key)), ...culprits.filter((id) => !(id in CAUSES))];
  if (unknown.length > 0) throw new Error(`the case "${name}" has ${unknown.join(", ")}, which is not known`);
}

/** nft has no families in a VM. */
function isPlayable({ backends, inject = "" }: RawFault, backend: string): boolean {
  return (backend !== "ipvs" || !/(?:^|[\s;{])nft /.test(inject)) && (backends?.includes(backend) ?? true);
}

/** Addresses of the Service that a case of API objects has for itself. */
function ownTarget({ site }: CaseWorld, number: number): Pick<TestService, "target"> {
  return {
    target: (way, family) => {
      if (way.startsWith("nodePort")) return { address: site.place("node1").address(family), port: 31_000 + number };
      if (way === "externalIP") return { address: `192.0.2.${number}`, port: 80 };
      return { address: family === "IPv4" ? `10.96.1.${number}` : `fd00:96::1${number.toString(16).padStart(3, "0")}`, port: 80 };
    },
  };
}

function targetOf(to: string, services: CaseWorld["services"]): Pick<FaultQuestion, "to" | "port"> {
  const found = serviceTarget(to.split(" "), services);
  if (found !== undefined) return { to: found.address, port: found.port };
  const colon = to.lastIndexOf(":");
  return { to: to.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(to.slice(colon + 1)) };
}

function serviceTarget(words: readonly string[], services: CaseWorld["services"]): ReturnType<TestService["target"]> | undefined {
  const [name = "", ...rest] = words;
  const [way = "clusterIP"] = rest.filter((word) => !["IPv4", "IPv6", "port"].includes(word));
  return services[name]?.target(way === "nodePort" ? "nodePort@node1" : (way as Way), familyOf(words));
}

function familyOf(words: readonly string[]): IPFamily {
  return words.includes("IPv6") ? "IPv6" : "IPv4";
}

/** Put texts in the place of names, in all strings of a value; `{{flags}}` in a list are those of the proxy. */
function expand(value: unknown, world: CaseWorld, fragments: Readonly<Record<string, string>>): unknown {
  if (typeof value === "string") return value.replace(/\{\{(.+?)\}\}/g, (_, name: string) => textOf(name, world, fragments));
  if (Array.isArray(value))
    return value.flatMap((one): readonly unknown[] => (one === "{{flags}}" ? world.flags : [expand(one, world, fragments)]));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, expand(one, world, fragments)]));
}

function textOf(name: string, world: CaseWorld, fragments: Readonly<Record<string, string>>): string {
  const { site, services, backend } = world;
  const fragment = fragments[name] ?? FRAGMENTS[name]?.(world);
  if (fragment !== undefined) return expand(fragment, world, fragments) as string;
  const words = name.split(" ");
  const isHex = words[0] === "hex";
  const [first = "", ...rest] = isHex ? words.slice(1) : words;
  const target = serviceTarget([first, ...rest], services);
  if (target === undefined && rest.some((word) => word !== "IPv6")) throw new Error(`a case for ${backend} names {{${name}}}`);
  if (rest.includes("port")) return isHex ? (target?.port ?? 0).toString(16).padStart(4, "0") : String(target?.port);
  const address = target?.address ?? site.place(first).address(familyOf(rest));
  return isHex ? addressBytes(address) : address;
}

const FRAGMENTS: Readonly<Record<string, (world: CaseWorld) => string>> = {
  node: () => process.execPath,
  writer: () => `${process.execPath} --conditions=@turnout/source ${WRITER}`,
  // What IPVS serves this host sends on itself, and so does a process that answers.
  toPods: ({ backend }) => (FORWARDED.includes(backend) ? "FORWARD" : "OUTPUT"),
  sent: ({ backend }) => (FORWARDED.includes(backend) ? "forward" : "output"),
  met: ({ backend }) => (FORWARDED.includes(backend) ? "forward" : "input"),
  // The name of the list of endpoints that `web` has.
  list: ({ site }) => {
    const endpoints = ["pod-1-1", "pod-2-1"].map((name) => hostPort(site.place(name).address("IPv4"), 8080));
    return createHash("sha256").update(endpoints.join("\n")).digest("hex").slice(0, 16);
  },
};

/** An address as it lies in maps; of IPv4 its end, which tells it from others. */
function addressBytes(address: string): string {
  const ip = parseIP(address);
  if (ip === undefined) throw new Error(`${address} is no address`);
  return ip.value.toString(16).padStart(ip.family === "IPv4" ? 8 : 32, "0");
}

const HEALTHY = parse(readFileSync(new URL("healthy.yaml", import.meta.url), "utf8")) as {
  readonly variants: readonly HealthyVariant[];
  /** `FROM SERVICE WAY`. */
  readonly packets: readonly string[];
};

/** What can be around packets of a backend. */
export function healthyVariants(backend: string): readonly HealthyVariant[] {
  return HEALTHY.variants.filter(({ backends }) => backends?.includes(backend) ?? true);
}

/** Packets that arrive. */
export function healthyCases({ services, site }: Pick<CaseWorld, "services" | "site">): readonly HealthyCase[] {
  return FAMILIES.flatMap((family) => [
    ...HEALTHY.packets.flatMap((text): readonly HealthyCase[] => {
      const [from = "", ...to] = text.split(" ");
      const tcp = { name: `${from} to ${to.join(" ")}, ${family}`, ask: { from, ...targetOf([...to, family].join(" "), services) } };
      return to.length === 1 ? [tcp, { name: `${tcp.name}, UDP`, ask: { ...tcp.ask, protocol: "UDP" } }] : [tcp];
    }),
    { name: `client1 to node1 itself, ${family}`, ask: { from: "client1", to: site.place("node1").address(family), port: HOST_PORT } },
    { name: `pod-1-2 to a pod itself, ${family}`, ask: { from: "pod-1-2", to: site.place("pod-1-1").address(family), port: 8080 } },
  ]);
}

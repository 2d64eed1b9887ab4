// What is pinned in a stage, in lines that two hosts with the same content share, and what another hand can do to it.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { familyOf } from "@turnout/core";
import type { IPFamily } from "@turnout/core/backend";
import type { Pin } from "@turnout/host/bpf";
import { REMEMBERING_MAPS, WRITTEN_MAPS } from "../bytes/elements.ts";
import { decodeAddress } from "../bytes/layout.ts";
import { familyOfRow, PIN_FOLDER } from "../names.ts";
import type { KernelStage } from "./kernel-stage.ts";
import { MapContent } from "./map-content.ts";
import { groupOf, namesIn } from "./map-elements.ts";

type MapPin = Pin & { readonly kind: "map" };

/** What programs remember is no matter of the backend's. */
const REMEMBERING: readonly string[] = REMEMBERING_MAPS;
/** Another hand leaves what nobody but programs and options decides alone. */
const TOUCHED: readonly string[] = WRITTEN_MAPS.filter((name) => name !== "opted_out");

/**
 * List the backend's own pins, or all others, with the elements of maps.
 *
 * Edges: of counters there are the rows, and not what was counted. Lists and source ranges that no service names are left out: they wait for their end.
 */
export function pinnedLines(stage: KernelStage, whose: "own" | "external"): readonly string[] {
  const root = rootOf(stage);
  const pins = stage.objects.bpf.pins(stage.bpffs).filter(({ path }) => path.startsWith(`${root}/`) === (whose === "own"));
  const maps = pins.filter(({ kind, path }) => kind === "map" && path.endsWith("/services")) as readonly MapPin[];
  const named = new Set(whose === "own" ? maps.flatMap((pin) => [...contentOf(stage, pin).values()].flatMap(namesIn)) : []);
  const folders = whose === "own" && existsSync(root) ? readdirSync(root, { withFileTypes: true, recursive: true }) : [];
  return [
    ...folders.filter((entry) => entry.isDirectory()).map(({ parentPath, name }) => `folder ${join(parentPath, name).slice(root.length)}`),
    ...pins.flatMap((pin) => linesOf(stage, pin, named)),
  ].toSorted();
}

/** Have another hand delete, change or add one thing among the backend's own; undefined: there is nothing. */
export function tamperWith(stage: KernelStage, random: () => number): string | undefined {
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)];
  const pins = stage.objects.bpf.pins(rootOf(stage));
  const elements = pins.flatMap((pin) =>
    pin.kind === "map" && TOUCHED.includes(pin.info.name)
      ? [...contentOf(stage, pin)].map(([key, value]) => ({ pin, key: Buffer.from(key, "hex"), value }))
      : [],
  );
  const acts: readonly (() => string | undefined)[] = [
    () => {
      const one = pick(elements.filter(({ pin }) => pin.info.type !== "array"));
      if (one === undefined) return undefined;
      withContent(stage, one.pin, ({ map }) => map.delete(one.key));
      return `deleted an element of ${one.pin.path}: ${one.key.toString("hex")}`;
    },
    () => {
      const one = pick(elements.filter(({ pin }) => pin.info.name !== "counters"));
      if (one === undefined) return undefined;
      const at = flipOne(one.value, random);
      withContent(stage, one.pin, ({ map }) => map.update(one.key, one.value));
      return `changed byte ${at} of an element of ${one.pin.path}: ${one.key.toString("hex")}`;
    },
    () => {
      const one = pick(elements.filter(({ pin }) => pin.info.type === "hash"));
      if (one === undefined) return undefined;
      const key = Buffer.from(one.key);
      flipOne(key, random);
      // The other family may be another process's, or nobody's.
      if (familyAt(one.pin, key) !== familyAt(one.pin, one.key)) return undefined;
      return withContent(stage, one.pin, ({ map }) => {
        if (map.lookup(key) !== undefined) return undefined;
        map.update(key, one.value);
        return `added an element to ${one.pin.path}: ${key.toString("hex")}`;
      });
    },
    () => {
      const one = pick(pins.filter((pin) => pin.kind === "link" && isAttached(pin)));
      if (one === undefined) return undefined;
      const link = stage.objects.bpf.openLink(one.path);
      link.detach();
      link.close();
      return `detached ${one.path}`;
    },
    () => {
      const one = pick(pins);
      if (one === undefined) return undefined;
      rmSync(one.path);
      return `removed ${one.path}`;
    },
  ];
  const first = Math.floor(random() * acts.length);
  for (let tries = 0; tries < acts.length; tries += 1) {
    const done = acts[(first + tries) % acts.length]?.();
    if (done !== undefined) return done;
  }
  return undefined;
}

/** The folder in which the backend pins. */
function rootOf({ bpffs }: KernelStage): string {
  return join(bpffs, PIN_FOLDER);
}

function linesOf(stage: KernelStage, pin: Pin, named: ReadonlySet<string>): readonly string[] {
  const name = `${pin.kind} ${pin.path.slice(stage.bpffs.length)}`;
  if (pin.kind === "program") return [`${name}: ${pin.info.name} ${pin.info.tag}`];
  if (pin.kind === "link") {
    const { info } = pin;
    if (info.kind === "cgroup") return [`${name}: ${info.hook} of cgroup ${info.cgroupId === stage.cgroupId ? "own" : info.cgroupId}`];
    return [info.kind === "tcx" ? `${name}: ${info.direction} of device ${info.ifindex}` : name];
  }
  const { type, keySize, valueSize, maxEntries, flags } = pin.info;
  return [`${name}: ${type} ${keySize} ${valueSize} ${maxEntries} ${flags}`, ...elementLines(stage, name, pin, named)];
}

/** A line for each element, or for all parts of a list. The node's network namespace is another one in each stage. */
function elementLines(stage: KernelStage, name: string, pin: MapPin, named: ReadonlySet<string>): readonly string[] {
  const map = pin.info.name;
  if (REMEMBERING.includes(map)) return [];
  const lines: string[] = [];
  const groups = new Map<string, string[]>();
  for (const [key, value] of contentOf(stage, pin)) {
    const text = map === "settings" ? value.toString("hex").replace(stage.namespaceCookie, "own") : value.toString("hex");
    const line = map === "counters" ? key : `${key} ${text}`;
    const group = groupOf(map, Buffer.from(key, "hex"));
    if (group === undefined) lines.push(`${name}: ${line}`);
    else if (named.has(group)) groups.set(group, [...(groups.get(group) ?? []), line]);
  }
  return [...lines, ...Array.from(groups, ([group, parts]) => `${name} ${group}: ${parts.toSorted().join(", ")}`)];
}

function contentOf(stage: KernelStage, pin: MapPin): ReadonlyMap<string, Buffer> {
  return withContent(stage, pin, (content) => content.read());
}

function withContent<T>({ objects }: KernelStage, { path }: MapPin, use: (content: MapContent) => T): T {
  const map = objects.bpf.openMap({ pin: path });
  const content = new MapContent(map);
  try {
    return use(content);
  } finally {
    content.close();
    map.close();
  }
}

/** Gives which byte has another bit. */
function flipOne(bytes: Buffer, random: () => number): number {
  const at = Math.floor(random() * bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return at;
}

function isAttached({ info }: Pin & { readonly kind: "link" }): boolean {
  return (info.kind === "cgroup" && info.cgroupId !== 0n) || (info.kind === "tcx" && info.ifindex !== 0);
}

/** The family that an element is of by its key; undefined: that its value tells, or both are. */
function familyAt({ info: { name } }: MapPin, key: Buffer): IPFamily | undefined {
  if (name === "counters") return familyOfRow(key.toString("hex"));
  return name === "services" || name === "node_addresses" ? familyOf(decodeAddress(key)) : undefined;
}

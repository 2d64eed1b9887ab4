import { familyOf } from "@turnout/core";
import type { IPFamily } from "@turnout/core/backend";
import { decodeAddress } from "../layout.ts";
import { familyOfRow } from "../names.ts";
import { ownRoot } from "./inventory.ts";
import { LinkThing, MapThing } from "./kernel-things.ts";
import type { MemoryKernel } from "./memory-kernel.ts";

/** Maps in which the backend itself keeps something. */
const KEPT: readonly string[] = [
  "services",
  "endpoints",
  "node_addresses",
  "source_ranges",
  "pod_ranges",
  "primaries",
  "settings",
  "counters",
];

/** Something that a foreign hand can do, and what it did; undefined: there was nothing to do it to. */
type Act = () => string | undefined;

/** Have a foreign hand delete, change or add one thing among the backend's own; undefined: there is nothing. */
export function tamperWith(kernel: MemoryKernel, random: () => number): string | undefined {
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)];
  const pins = kernel.files.pins(ownRoot(kernel));
  const maps = pins.flatMap(([path, thing]) => (thing instanceof MapThing && KEPT.includes(thing.info.name) ? [{ path, thing }] : []));
  const elements = maps.flatMap(({ path, thing }) => thing.map.all().map(([key, value]) => ({ path, thing, key, value })));
  const acts: readonly Act[] = [
    () => {
      const one = pick(elements.filter(({ thing }) => thing.info.type !== "array"));
      one?.thing.map.delete(one.key);
      return one && `deleted an element of ${one.path}: ${hex(one.key)}`;
    },
    () => {
      const one = pick(elements.filter(({ thing }) => thing.info.name !== "counters"));
      if (one === undefined) return undefined;
      const changed = Buffer.from(one.value.bytes);
      const at = Math.floor(random() * changed.length);
      changed[at] = (changed[at] ?? 0) ^ 1;
      one.thing.map.update(one.key, changed, "any");
      return `changed byte ${at} of an element of ${one.path}: ${hex(one.key)}`;
    },
    () => {
      const one = pick(elements.filter(({ thing }) => thing.info.type === "hash"));
      if (one === undefined) return undefined;
      const key = Buffer.from(one.key, "latin1");
      const at = Math.floor(random() * key.length);
      key[at] = (key[at] ?? 0) ^ 1;
      // The other family may be another process's, or nobody's.
      if (familyAt(one.thing.info.name, key) !== familyAt(one.thing.info.name, Buffer.from(one.key, "latin1"))) return undefined;
      const refusal = one.thing.map.update(key.toString("latin1"), one.value.bytes, "create");
      return refusal === undefined ? `added an element to ${one.path}: ${key.toString("hex")}` : undefined;
    },
    () => {
      const one = pick(pins.flatMap(([path, thing]) => (thing instanceof LinkThing && thing.place !== undefined ? [{ path, thing }] : [])));
      one?.thing.detach();
      return one && `detached ${one.path}`;
    },
    () => {
      const one = pick(pins);
      if (one === undefined) return undefined;
      kernel.files.remove(one[0]);
      return `removed ${one[0]}`;
    },
  ];
  const first = Math.floor(random() * acts.length);
  for (let tries = 0; tries < acts.length; tries += 1) {
    const done = acts[(first + tries) % acts.length]?.();
    if (done !== undefined) return done;
  }
  return undefined;
}

/** The family that an element is of by its key; undefined: that its value tells, or both are. */
function familyAt(map: string, key: Buffer): IPFamily | undefined {
  if (map === "counters") return familyOfRow(key.toString("hex"));
  return map === "services" || map === "node_addresses" ? familyOf(decodeAddress(key)) : undefined;
}

function hex(key: string): string {
  return Buffer.from(key, "latin1").toString("hex");
}

import { join } from "node:path";
import { REMEMBERING_MAPS } from "../elements.ts";
import { STRUCTS } from "../layout.ts";
import { PIN_FOLDER } from "../names.ts";
import { groupOf } from "./element-groups.ts";
import { LinkThing, MapThing, ProgramThing } from "./kernel-things.ts";
import type { KernelThing } from "./kernel-things.ts";
import type { MemoryKernel } from "./memory-kernel.ts";

/** What programs remember is no matter of the backend's. */
const REMEMBERING: readonly string[] = REMEMBERING_MAPS;

/**
 * List what is pinned and attached, in lines that two hosts with the same content share: no numbers of the kernel's.
 *
 * Edges: of counters there are the rows, and not what was counted. Lists and source ranges that no service names are left out: they wait for their end.
 */
export function linesOf(kernel: MemoryKernel, whose: "own" | "foreign"): readonly string[] {
  const root = ownRoot(kernel);
  const isWanted = (path: string): boolean => (path === root || path.startsWith(`${root}/`)) === (whose === "own");
  const pins = kernel.files.pins(kernel.files.root).filter(([path]) => isWanted(path));
  const named = namedBy(whose === "own" ? pins : []);
  const names = new Map(kernel.files.pins(kernel.files.root).map(([path, thing]) => [thing.id, path]));
  const attached = [
    ...kernel.links.map((link) => ({
      by: names.get(link.id) ?? `link of ${link.program.info.name}`,
      program: link.program,
      place: link.place,
    })),
    ...kernel.filters.map(({ program, ifindex, direction, priority }) => ({
      by: `filter ${priority}`,
      program,
      place: { kind: "clsact", ifindex, direction } as const,
    })),
  ];
  return [
    ...kernel.files.allFolders.filter((path) => path !== kernel.files.root && isWanted(path)).map((path) => `folder ${path}`),
    ...pins.flatMap(([path, thing]) => pinLines(path, thing, named)),
    ...attached
      .filter(({ by, program }) => (by.startsWith("/") ? isWanted(by) : isOwnName(program) === (whose === "own")))
      .map(({ by, program, place }) => `attached ${by}: ${names.get(program.id) ?? program.info.name} at ${placeText(place)}`),
  ].toSorted();
}

/** The folder in which the backend pins. */
export function ownRoot(kernel: MemoryKernel): string {
  return join(kernel.files.root, PIN_FOLDER);
}

function isOwnName({ info }: ProgramThing): boolean {
  return info.name.startsWith("turnout_");
}

/** The lists and source ranges that services name. */
function namedBy(pins: readonly (readonly [string, KernelThing])[]): ReadonlySet<string> {
  const { pod, host, outside, ranges } = STRUCTS.service.fields;
  const { list } = STRUCTS.choice.fields;
  const names = pins
    .flatMap(([, thing]) => (thing instanceof MapThing && thing.info.name === "services" ? thing.map.all() : []))
    .flatMap(([, { bytes }]) => {
      const at = (offset: number, length: number): string => bytes.toString("latin1", offset, offset + length);
      return [at(...ranges), ...[pod, host, outside].map(([choice]) => at(choice + list[0], list[1]))];
    });
  return new Set(names);
}

function pinLines(path: string, thing: KernelThing, named: ReadonlySet<string>): readonly string[] {
  if (thing instanceof ProgramThing) return [`program ${path}: ${thing.info.name} ${thing.info.tag}`];
  if (thing instanceof LinkThing) return [`link ${path}: ${placeText(thing.place)}`];
  if (!(thing instanceof MapThing)) return [];
  const { type, keySize, valueSize, maxEntries, flags, name } = thing.info;
  return [
    `map ${path}: ${type} ${keySize} ${valueSize} ${maxEntries} ${flags}`,
    ...(REMEMBERING.includes(name) ? [] : elementLines(path, thing, named)),
  ];
}

/** A line for each element, or for all parts of a list. */
function elementLines(path: string, { map, info: { name } }: MapThing, named: ReadonlySet<string>): readonly string[] {
  const lines: string[] = [];
  const groups = new Map<string, string[]>();
  for (const [key, { bytes }] of map.all()) {
    const text = `${hex(key)} ${name === "counters" ? "" : bytes.toString("hex")}`;
    const group = groupOf(name, key);
    if (group === undefined) lines.push(`element ${path}: ${text}`);
    else if (named.has(group)) groups.set(group, [...(groups.get(group) ?? []), text]);
  }
  for (const [group, texts] of groups) lines.push(`parts ${path} ${hex(group)}: ${texts.toSorted().join(", ")}`);
  return lines;
}

function hex(text: string): string {
  return Buffer.from(text, "latin1").toString("hex");
}

function placeText(place: LinkThing["place"] | { readonly kind: "clsact"; readonly ifindex: number; readonly direction: string }): string {
  if (place === undefined) return "nothing";
  return place.kind === "cgroup"
    ? `${place.hook} of cgroup ${place.cgroupId}`
    : `${place.direction} of device ${place.ifindex} by ${place.kind}`;
}

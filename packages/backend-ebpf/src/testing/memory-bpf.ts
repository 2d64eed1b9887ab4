import { existsSync } from "node:fs";
import { basename } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import { layoutDifference, MAP_TYPE } from "@turnout/host/bpf";
import type {
  Bpf,
  BpfLink,
  BpfMap,
  BpfProgram,
  CgroupHook,
  LoadedObject,
  LoadOptions,
  MapInfo,
  MapLayout,
  MapSpec,
  Pin,
  TcAttachment,
  TcFilter,
  TcFilterName,
  TcPlace,
} from "@turnout/host/bpf";
import { LinkThing, MapThing, ProgramThing } from "./kernel-things.ts";
import type { KernelThing } from "./kernel-things.ts";
import { MemoryLink, MemoryMap, MemoryProgram, programOf } from "./memory-handles.ts";
import type { MemoryKernel } from "./memory-kernel.ts";
import type { WantedMap } from "./object-file.ts";

/** {@link Bpf} of a kernel in memory. */
export class MemoryBpf implements Bpf {
  readonly #kernel: MemoryKernel;

  constructor(kernel: MemoryKernel) {
    this.#kernel = kernel;
  }

  load(path: string, options: LoadOptions = {}): Promise<LoadedObject> {
    try {
      return Promise.resolve(this.#kernel.change(`loading ${basename(path)}`, () => this.#loadNow(path, options)));
    } catch (error) {
      return Promise.reject(ProxyError.from(error, "tool_failed", "a BPF object can't be loaded"));
    }
  }

  createMap(spec: MapSpec): BpfMap {
    const flags = (spec.flags ?? 0) | (spec.type === "lpm-trie" ? 1 : 0);
    return new MemoryMap(this.#kernel, this.#kernel.makeMap({ ...spec, flags }));
  }

  openMap(where: { readonly pin: string } | { readonly id: number }): BpfMap {
    const thing = "pin" in where ? this.#open(where.pin, MapThing, "map") : this.#kernel.mapById(where.id);
    return new MemoryMap(this.#kernel, thing);
  }

  openProgram(pin: string): BpfProgram {
    return new MemoryProgram(this.#kernel, this.#open(pin, ProgramThing, "program"));
  }

  openLink(pin: string): BpfLink {
    return new MemoryLink(this.#kernel, this.#open(pin, LinkThing, "link"), `link ${pin}`);
  }

  attachToCgroup(program: BpfProgram, cgroup: string, hook: CgroupHook): BpfLink {
    const cgroupId = this.#kernel.cgroup(cgroup);
    const label = `link of ${program.label} at ${hook} of ${cgroup}`;
    const attach = (): LinkThing => this.#kernel.attach(programOf(program), { kind: "cgroup", cgroupId, hook });
    return new MemoryLink(this.#kernel, this.#kernel.change(label, attach), label);
  }

  attachTc(program: BpfProgram, { ifindex, direction }: TcPlace): TcAttachment {
    const label = `link of ${program.label} at ${direction} of device ${ifindex}`;
    const attach = (): LinkThing => this.#kernel.attach(programOf(program), { kind: "tcx", ifindex, direction });
    return { kind: "tcx", link: new MemoryLink(this.#kernel, this.#kernel.change(label, attach), label) };
  }

  attachClsact(program: BpfProgram, place: TcPlace, name: TcFilterName): TcFilter {
    const put = (one: BpfProgram): void =>
      this.#kernel.change(`filter of ${one.label}`, () => this.#kernel.setFilter({ ...place, ...name, program: programOf(one) }));
    put(program);
    return { update: put, detach: () => this.detachClsact(place, name) };
  }

  detachClsact(place: TcPlace, name: TcFilterName): void {
    this.#kernel.change("detaching a filter", () => this.#kernel.removeFilter(place, name));
  }

  clsactProgram(place: TcPlace, name: TcFilterName): number | undefined {
    return this.#kernel.filter(place, name)?.program.id;
  }

  pins(folder: string): readonly Pin[] {
    return this.#kernel.files.pins(folder).map(([path, thing]) => pinOf(path, thing));
  }

  removePins(folder: string): void {
    const { files } = this.#kernel;
    if (!files.exists(folder)) return;
    this.#kernel.change(`removing ${folder}`, () => {
      for (const [, thing] of files.pins(folder)) if (thing instanceof LinkThing) thing.detach();
      files.remove(folder);
    });
  }

  #open<T extends KernelThing>(pin: string, type: new (...args: never[]) => T, what: string): T {
    const thing = this.#kernel.files.open(pin);
    if (thing instanceof type) return thing;
    throw new ProxyError("invalid_object", `this is no BPF ${what}`, { object: pin });
  }

  #loadNow(path: string, { maps: choices = {}, without = [] }: LoadOptions): LoadedObject {
    if (!existsSync(path))
      throw new ProxyError("not_found", "there is no such BPF object file", { object: path, hint: "it is compiled by: npm run build" });
    const code = this.#kernel.code(path);
    const { file } = code;
    requireKnown(Object.keys(choices), file.maps, "map", path);
    requireKnown(without, file.programs, "program", path);
    const things = file.maps.map((wanted): readonly [thing: MapThing, pin: string | undefined] => {
      const { maxEntries = wanted.maxEntries, pin } = choices[wanted.name] ?? {};
      const sized: WantedMap = { ...wanted, maxEntries };
      if (pin === undefined || !this.#kernel.files.exists(pin)) return [this.#kernel.makeMap(sized), pin];
      const reused = this.#open(pin, MapThing, "map");
      requireSameLayout(reused.info, sized, pin);
      return [reused, undefined];
    });
    const all = things.map(([thing]) => thing);
    const programs = file.programs
      .filter(({ name }) => !without.includes(name))
      .map((entry) => [entry.name, new MemoryProgram(this.#kernel, this.#kernel.makeProgram(entry, code, all))] as const);
    const maps = file.maps.flatMap(({ name }, index) => {
      const thing = all[index];
      return thing === undefined ? [] : [[name, new MemoryMap(this.#kernel, thing)] as const];
    });
    for (const [thing, pin] of things) if (pin !== undefined) this.#kernel.files.pin(thing, pin, false);
    return loaded(new Map(programs), new Map(maps));
  }
}

function loaded(programs: ReadonlyMap<string, BpfProgram>, maps: ReadonlyMap<string, BpfMap>): LoadedObject {
  const demand = <T>(one: T | undefined, what: string, name: string): T => {
    if (one === undefined) throw new ProxyError("not_found", `a BPF object has no ${what} of this name`, { object: name });
    return one;
  };
  return {
    programs,
    maps,
    verifierLogs: new Map(),
    program: (name) => demand(programs.get(name), "program", name),
    map: (name) => demand(maps.get(name), "map", name),
    close(): void {
      for (const one of [...programs.values(), ...maps.values()]) one.close();
    },
  };
}

function requireKnown(names: readonly string[], all: readonly { readonly name: string }[], what: string, path: string): void {
  for (const name of names) {
    if (all.some((one) => one.name === name)) continue;
    throw new ProxyError("invalid_object", `a BPF object has no ${what} of this name`, { object: `${name} in ${basename(path)}` });
  }
}

function requireSameLayout(has: MapInfo, wanted: WantedMap, pin: string): void {
  const layout = ({ type, keySize, valueSize, maxEntries, flags }: MapInfo | WantedMap): MapLayout => ({
    type: MAP_TYPE[type as WantedMap["type"]],
    keySize,
    valueSize,
    maxEntries,
    flags,
  });
  const difference = layoutDifference(layout(has), layout(wanted));
  if (difference === undefined) return;
  throw new ProxyError("invalid_object", "a pinned map has another layout than the programs", {
    object: `${pin}: ${difference}`,
    hint: "pin the new layout under another path, or remove the old pins",
  });
}

function pinOf(path: string, thing: KernelThing): Pin {
  if (thing instanceof MapThing) return { path, kind: "map", info: thing.info };
  if (thing instanceof ProgramThing) return { path, kind: "program", info: thing.info };
  return { path, kind: "link", info: (thing as LinkThing).info() };
}

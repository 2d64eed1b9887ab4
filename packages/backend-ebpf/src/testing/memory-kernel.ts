import type { FaultSwitches } from "@turnout/conformance";
import { ProxyError } from "@turnout/core/backend";
import { programTypeAt } from "@turnout/host/bpf";
import type { CgroupHook, Direction, TcFilterName, TcPlace } from "@turnout/host/bpf";
import { BpfFiles } from "./bpf-files.ts";
import { Journal } from "./journal.ts";
import { makeMap } from "./kernel-maps.ts";
import type { MapShape } from "./kernel-maps.ts";
import { LinkThing, MapThing, ProgramThing } from "./kernel-things.ts";
import type { Place } from "./kernel-things.ts";
import { codeOf } from "./program-code.ts";
import type { Code } from "./program-code.ts";
import type { ProgramEntry } from "./object-file.ts";

/** A filter of clsact, which holds its program. */
export interface Filter extends TcPlace, TcFilterName {
  readonly program: ProgramThing;
}

/** What the kernel in memory is made with. */
export interface MemoryKernelOptions {
  /** Asked before each change that the backend makes. */
  readonly faults: FaultSwitches;
  /** Where its bpffs is mounted. */
  readonly bpffs: string;
  /** Its cgroups, by their folders. */
  readonly cgroups: ReadonlyMap<string, bigint>;
  /** The numbers of its devices. */
  readonly devices: ReadonlySet<number>;
}

/** The part of a kernel that has to do with BPF, in memory: maps, programs, links, pins, and what is attached where. */
export class MemoryKernel {
  readonly files: BpfFiles;
  readonly journal: Journal = new Journal();
  readonly #options: MemoryKernelOptions;
  readonly #maps = new Set<MapThing>();
  #links: readonly LinkThing[] = [];
  #filters: readonly Filter[] = [];
  #lastId = 0;
  #written = 0;
  /** Called after each change of the backend's. */
  onChange: () => void = () => undefined;

  constructor(options: MemoryKernelOptions) {
    this.#options = options;
    this.files = new BpfFiles(options.bpffs);
  }

  /** How many elements, pins and links the backend has written. */
  get written(): number {
    return this.#written;
  }

  /** Links that are attached, in the order in which they came. */
  get links(): readonly LinkThing[] {
    return this.#links.filter(({ place }) => place !== undefined);
  }

  /** Filters of clsact, the lowest priority first. */
  get filters(): readonly Filter[] {
    return this.#filters;
  }

  /**
   * Make a change of the backend's, unless it is to fail.
   * @param named the addresses that it names
   * @throws {ProxyError} `tool_failed`
   */
  change<T>(what: string, work: () => T, named: readonly string[] = [], count = 1): T {
    const when = this.#options.faults.next(named);
    if (when === "before" || when === "during") throw new ProxyError("tool_failed", `${what} fails (ENOMEM)`);
    const result = work();
    this.count(count);
    if (when === "after") throw new ProxyError("tool_failed", `${what} was done, and its answer is lost`);
    return result;
  }

  /** How the next change of many elements fails, if it does; they are counted as they are written. */
  nextFault(): "before" | "during" | "after" | undefined {
    return this.#options.faults.next([]);
  }

  /** Whether an element that names addresses is refused. */
  isRefused(named: readonly string[]): boolean {
    return this.#options.faults.isRefused(named);
  }

  /** So much was written. */
  count(things: number): void {
    this.#written += things;
    this.onChange();
  }

  /** @throws {ProxyError} `invalid_object` */
  makeMap(shape: MapShape): MapThing {
    const map = makeMap(shape, this.journal);
    if (map === undefined) throw new ProxyError("invalid_object", "a BPF map can't be made (EINVAL)", { object: shape.name });
    const thing = new MapThing((this.#lastId += 1), map);
    this.#maps.add(thing);
    return thing;
  }

  /** A map that somebody holds. @throws {ProxyError} `not_found` */
  mapById(id: number): MapThing {
    for (const map of this.#maps) if (!map.isHeld) this.#maps.delete(map);
    const found = [...this.#maps].find((map) => map.id === id);
    if (found === undefined) throw new ProxyError("not_found", "a BPF map can't be opened (ENOENT)", { object: `id ${id}` });
    return found;
  }

  code(path: string): Code {
    return codeOf(path);
  }

  makeProgram({ name, kind, entry }: ProgramEntry, code: Code, maps: readonly MapThing[]): ProgramThing {
    const type = kind.is === "tc" ? 3 : programTypeAt(kind.hook);
    const info = { id: (this.#lastId += 1), name, type, tag: code.digest.slice(0, 16) };
    return new ProgramThing(info, { code, entry, kind, maps: maps.map(({ map }) => map) }, maps);
  }

  /** @throws {ProxyError} `not_found`, `tool_failed` */
  attach(program: ProgramThing, place: Place): LinkThing {
    requireFit(program, place.kind, place.kind === "cgroup" ? place.hook : undefined);
    if (place.kind === "tcx") this.#requireDevice(place.ifindex);
    const link = new LinkThing((this.#lastId += 1), program, place);
    this.#links = [...this.links, link];
    return link;
  }

  /** Put a program in the place of a link's. @throws {ProxyError} `tool_failed` */
  replace(link: LinkThing, program: ProgramThing): void {
    if (link.place === undefined) throw new ProxyError("tool_failed", "a link that is attached to nothing gets no program (ENOLINK)");
    requireFit(program, link.place.kind, link.place.kind === "cgroup" ? link.place.hook : undefined);
    link.replace(program);
  }

  /** The number of a cgroup. @throws {ProxyError} `not_found` */
  cgroup(folder: string): bigint {
    const id = this.#options.cgroups.get(folder);
    if (id === undefined) throw new ProxyError("not_found", "a cgroup can't be opened (ENOENT)", { object: folder });
    return id;
  }

  /** Put a filter at its place, in place of one of the same name. @throws {ProxyError} `not_found`, `tool_failed` */
  setFilter(filter: Filter): void {
    this.#requireDevice(filter.ifindex);
    requireFit(filter.program, "tcx", undefined);
    filter.program.hold();
    this.removeFilter(filter, filter);
    this.#filters = [...this.#filters, filter].toSorted((a, b) => a.priority - b.priority);
  }

  removeFilter(place: TcPlace, name: TcFilterName): void {
    this.filter(place, name)?.program.release();
    this.#filters = this.#filters.filter((one) => !isNamed(one, place, name));
  }

  filter(place: TcPlace, name: TcFilterName): Filter | undefined {
    return this.#filters.find((one) => isNamed(one, place, name));
  }

  /** The programs at a hook of a cgroup, in the order in which they are called. */
  programsAt(hook: CgroupHook): readonly ProgramThing[] {
    return this.#links.flatMap(({ place, program }) => (place?.kind === "cgroup" && place.hook === hook ? [program] : []));
  }

  /** The programs at a device, in the order in which they are called: those of tcx come first. */
  programsOn(ifindex: number, direction: Direction): readonly ProgramThing[] {
    const isHere = (one: TcPlace): boolean => one.ifindex === ifindex && one.direction === direction;
    return [
      ...this.#links.flatMap(({ place, program }) => (place?.kind === "tcx" && isHere(place) ? [program] : [])),
      ...this.#filters.filter(isHere).map(({ program }) => program),
    ];
  }

  #requireDevice(ifindex: number): void {
    if (this.#options.devices.has(ifindex)) return;
    throw new ProxyError("not_found", "a program can't be attached to a device, there is none of this number (ENODEV)", {
      object: String(ifindex),
    });
  }
}

function isNamed(one: Filter, { ifindex, direction }: TcPlace, { priority, handle }: TcFilterName): boolean {
  return one.ifindex === ifindex && one.direction === direction && one.priority === priority && one.handle === handle;
}

function requireFit({ program: { kind }, info }: ProgramThing, at: Place["kind"], hook: CgroupHook | undefined): void {
  const isFit = kind.is === "cgroup" ? at === "cgroup" && kind.hook === hook : at === "tcx";
  if (!isFit) throw new ProxyError("tool_failed", "a program can't be attached here (EINVAL)", { object: info.name });
}

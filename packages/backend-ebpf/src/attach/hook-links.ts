import { basename, join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { Clock, IPFamily } from "@turnout/core/backend";
import type { BpfProgram, BpfMap } from "@turnout/host/bpf";
import { bring, familiesAt, FILTER, linksIn, programOf, programPins, take } from "./attached.ts";
import type { PinnedLink } from "./attached.ts";
import { placeOf, PROGRAM_FILES } from "../hooks.ts";
import { filledMark, hasOurLayout, mapFolderOf, servingMark } from "../names.ts";
import type { AttachedObject, DeviceObject } from "../objects.ts";
import type { PinnedMaps, PinWorld } from "../pins/pinned-maps.ts";
import { REMEMBERING_MAPS } from "../bytes/elements.ts";
import type { EbpfMap } from "../bytes/elements.ts";

/** One map that is read, and the one that takes its place. */
interface Pair {
  readonly from: BpfMap;
  readonly to: BpfMap;
  /** Keys that were brought over. */
  readonly known: Set<string>;
}

/**
 * Brings what programs remember of clients and sockets from maps of another size to those that take their place.
 *
 * Edges: the new maps keep what they have already. What doesn't fit goes as the oldest does.
 */
class CarryOver {
  readonly #pairs: readonly Pair[];

  private constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs;
  }

  /** Open the maps of a folder, whose layout must be that of the others. */
  static open(root: string, folder: string, maps: ReadonlyMap<EbpfMap, BpfMap>, { bpf }: Pick<PinWorld, "bpf">): CarryOver {
    const pairs = REMEMBERING_MAPS.flatMap((name): readonly Pair[] => {
      const to = maps.get(name);
      const from = openIfThere(() => bpf.openMap({ pin: join(root, folder, name) }));
      return from === undefined || to === undefined ? [] : [{ from, to, known: new Set() }];
    });
    return new CarryOver(pairs);
  }

  /** Bring over what has come since the last time. */
  async bring(): Promise<void> {
    for (const { from, to, known } of this.#pairs) {
      const { keySize } = from.info;
      for await (const { count, keys, values } of from.read()) {
        for (let index = 0; index < count; index += 1) {
          const key = keys.subarray(index * keySize, (index + 1) * keySize);
          const name = key.toString("latin1");
          if (known.has(name)) continue;
          known.add(name);
          if (to.lookup(key) === undefined) to.update(key, values.subarray(index * from.valueBytes, (index + 1) * from.valueBytes));
        }
      }
    }
  }

  /** Let go of the maps that were read. */
  close(): void {
    for (const { from } of this.#pairs) from.close();
  }
}

function openIfThere(open: () => BpfMap): BpfMap | undefined {
  try {
    return open();
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return undefined;
    throw error;
  }
}

/** How long a program waits for the maps of another family to be filled, and how often it looks, in ms. */
const FILL_WAIT_MS = 5_000;
const FILL_POLL_MS = 20;
/** How long the kernel may take to let a link go whose pin was removed, in ms: until then the same program can't be attached to the device again. */
const FREE_WAIT_MS = 1_000;

/** What links are made with. */
export interface HookLinkTools {
  readonly world: PinWorld & { readonly clock: Clock };
  readonly maps: PinnedMaps;
  /** The cgroup's folder. @throws {ProxyError} where there is none. */
  cgroup(): string;
  /** The families in use. */
  families(): Iterable<IPFamily>;
}

/** What could not be attached, and why. */
type Failures = Map<AttachedObject, ProxyError>;

/** Programs at hooks of a cgroup and at devices: pinned links, which go on when no process of ours runs. */
export class HookLinks {
  readonly #tools: HookLinkTools;

  constructor(tools: HookLinkTools) {
    this.#tools = tools;
  }

  /**
   * Bring programs to their hooks and devices; gives what could not be, and why. Where another program of ours is there, it is replaced in one step, all
   * of them one right after the other; if those use other maps, then only once all families that ask there have been filled into these, and what those
   * programs remember is brought along.
   * Edges: when the programs can't be loaded, nothing changes: those before go on, with what is written to these maps if they use them. A device that is
   * gone meanwhile is none to attach to.
   * @throws {ProxyError} `canceled`, what carrying over failed with.
   */
  async attach(objects: readonly AttachedObject[], signal: AbortSignal): Promise<ReadonlyMap<AttachedObject, ProxyError>> {
    const failed: Failures = new Map();
    const programs = new Map<string, BpfProgram>();
    try {
      for (const file of PROGRAM_FILES) {
        const some = objects.filter((object) => programOf(object).file === file);
        if (some.length > 0) await this.#orFailAll(some, failed, async () => this.#open(file, programs));
      }
      await this.#attachPrograms(objects, programs, failed, signal);
    } finally {
      for (const program of programs.values()) program.close();
    }
    return failed;
  }

  /** Take programs from devices; gives what could not be, and why. */
  detach(devices: readonly DeviceObject[]): ReadonlyMap<AttachedObject, ProxyError> {
    const failed: Failures = new Map();
    const { maps, world } = this.#tools;
    for (const device of devices) {
      try {
        take(device, { ...world, root: maps.demandRoot() });
      } catch (error) {
        if (!ProxyError.is(error)) throw error;
        failed.set(device, error);
      }
    }
    return failed;
  }

  /** Say that a family's services have been in the maps, by a folder: a bpffs has them. */
  mark(family: IPFamily): void {
    this.#tools.world.pinFiles.makeFolder(this.#markOf(family));
  }

  /** Say that a family is served, by a folder. */
  markServing(family: IPFamily): void {
    const { maps, world } = this.#tools;
    world.pinFiles.makeFolder(join(maps.demandRoot(), servingMark(family)));
  }

  /** Remove a folder of maps or programs; false: a program of it is at a hook. */
  removeFolder(path: string): boolean {
    const { maps, world } = this.#tools;
    const root = maps.demandRoot();
    if (this.#pinned().some(({ programs }) => programs === path || mapFolderOf(programs) === path)) return false;
    world.bpf.removePins(join(root, path));
    return true;
  }

  async #open(file: (typeof PROGRAM_FILES)[number], programs: Map<string, BpfProgram>): Promise<void> {
    for (const [name, program] of await this.#tools.maps.openPrograms(file)) programs.set(name, program);
  }

  async #attachPrograms(
    objects: readonly AttachedObject[],
    programs: ReadonlyMap<string, BpfProgram>,
    failed: Failures,
    signal: AbortSignal,
  ): Promise<void> {
    const { maps, world, cgroup } = this.#tools;
    const before = this.#foldersBefore(objects);
    const waiting = objects.filter((object) => !failed.has(object) && before.has(object) && before.get(object) !== maps.folder);
    const sources = await this.#sourcesOf(waiting.map((object) => before.get(object) ?? ""));
    const tools = { ...world, root: maps.demandRoot(), cgroup };
    try {
      const untilMs = world.clock.nowMs() + FILL_WAIT_MS;
      for (const object of waiting) await this.#orFailAll([object], failed, () => this.#demandFilled(object, untilMs, signal));
      for (const source of sources) await source.bring();
      for (const object of objects)
        await this.#orFailAll([object], failed, () => {
          const { name } = programOf(object);
          const program = programs.get(name);
          if (program === undefined) throw new ProxyError("not_found", "there is no such program", { object: name });
          return this.#whenFree(() => bring(object, program, tools), signal);
        });
      for (const source of sources) await source.bring();
    } finally {
      for (const source of sources) source.close();
    }
  }

  /** Do something for objects of which none has failed yet. */
  async #orFailAll(objects: readonly AttachedObject[], failed: Failures, work: () => void | Promise<void>): Promise<void> {
    if (objects.some((object) => failed.has(object))) return;
    try {
      await work();
    } catch (error) {
      if (!ProxyError.is(error) || error.code === "canceled") throw error;
      for (const object of objects) failed.set(object, error);
    }
  }

  #pinned(): readonly PinnedLink[] {
    const { maps, world } = this.#tools;
    const root = maps.demandRoot();
    return linksIn(world.bpf.pins(root), root);
  }

  /** The folders of the maps that programs use which are attached where objects will be. */
  #foldersBefore(objects: readonly AttachedObject[]): ReadonlyMap<AttachedObject, string> {
    const { maps, world } = this.#tools;
    const root = maps.demandRoot();
    const pins = world.bpf.pins(root);
    const links = new Map(linksIn(pins, root).map((link) => [basename(link.path), link.programs]));
    const filtering = programPins(pins, root);
    return new Map(
      objects.flatMap((object) => {
        const place = object.kind === "device" && !links.has(object.key) ? placeOf(object.key) : undefined;
        const filter = place === undefined ? undefined : world.bpf.clsactProgram(place, FILTER);
        const programs = filter === undefined ? links.get(object.key) : filtering.get(filter)?.programs;
        return programs === undefined ? [] : [[object, mapFolderOf(programs)] as const];
      }),
    );
  }

  /** What the programs of other folders remember, where it can be read. */
  async #sourcesOf(folders: readonly string[]): Promise<readonly CarryOver[]> {
    const { maps, world } = this.#tools;
    const known = await maps.ensure();
    return [...new Set(folders)].filter(hasOurLayout).map((folder) => CarryOver.open(maps.demandRoot(), folder, known, world));
  }

  /** @throws {ProxyError} `timed_out` when a family that asks there is not filled in time, `canceled`. */
  async #demandFilled(object: AttachedObject, untilMs: number, signal: AbortSignal): Promise<void> {
    const { clock, pinFiles } = this.#tools.world;
    const used = new Set(this.#tools.families());
    for (const family of familiesAt(object)) {
      while (used.has(family) && !pinFiles.exists(this.#markOf(family))) {
        if (clock.nowMs() >= untilMs)
          throw new ProxyError("timed_out", `the services of ${family} are not in the new maps yet`, {
            object: object.key,
            hint: "the old ones stay in force; it is tried again",
          });
        await clock.sleep(FILL_POLL_MS, signal);
        if (signal.aborted) throw new ProxyError("canceled", "a plan was stopped", { cause: signal.reason });
      }
    }
  }

  /** Do it, again and again while the place is taken. @throws {ProxyError} what it failed with last, `canceled`. */
  async #whenFree(work: () => void, signal: AbortSignal): Promise<void> {
    const { clock } = this.#tools.world;
    const untilMs = clock.nowMs() + FREE_WAIT_MS;
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!ProxyError.is(error, "already_exists") || clock.nowMs() >= untilMs) throw error;
      }
      await clock.sleep(FILL_POLL_MS, signal);
      if (signal.aborted) throw new ProxyError("canceled", "a plan was stopped", { cause: signal.reason });
    }
  }

  #markOf(family: IPFamily): string {
    const { maps } = this.#tools;
    return join(maps.demandRoot(), maps.folder, filledMark(family));
  }
}

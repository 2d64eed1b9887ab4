import { join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { BpfMap, BpfProgram, MapChoice, Pin } from "@turnout/host/bpf";
import { ALL_MAPS, WRITTEN_MAPS } from "../bytes/elements.ts";
import type { EbpfMap, WrittenMap } from "../bytes/elements.ts";
import { PROGRAMS_OF } from "../hooks.ts";
import type { ProgramFile } from "../hooks.ts";
import { mapFolder, PIN_FOLDER, programFolder } from "../names.ts";
import { maxEntries } from "../options.ts";
import type { EbpfOptions } from "../options.ts";
import { Refusals } from "../attach/refusals.ts";
import type { EbpfWorld } from "../world.ts";

/** What pins take of the world. */
export type PinWorld = Pick<EbpfWorld, "bpf" | "pinFiles" | "mounts" | "objectFiles" | "buildOf" | "writeText">;

/**
 * The maps and programs of one layout, size and build, by their pins.
 *
 * Edges: made when they are needed first and not all there. Both families share them.
 */
export class PinnedMaps {
  /** The folder of the maps, and in it those of the programs, below that of all pins. */
  readonly folder: string;
  readonly programs: Readonly<Record<ProgramFile, string>>;
  readonly #world: PinWorld;
  readonly #sizes: Readonly<Record<string, number>>;
  readonly #refusals: Refusals;
  #maps = new Map<EbpfMap, BpfMap>();
  /** Of the pins by which the maps were opened. */
  readonly #inodes = new Map<EbpfMap, number>();
  /** Whose pins others have opened. */
  readonly #opened = new Set<WrittenMap>();
  #root: string | undefined;
  readonly #loading = new Map<ProgramFile, Promise<void>>();

  constructor(world: PinWorld, { sizes, verifierLog }: Pick<EbpfOptions, "sizes" | "verifierLog">) {
    this.#world = world;
    this.#refusals = new Refusals(verifierLog, world);
    this.#sizes = maxEntries(sizes);
    this.folder = mapFolder(this.#sizes);
    // Without the file nothing can be loaded, which loading says; what is there can still be looked at and removed.
    const folderOf = (file: ProgramFile): string => {
      const objectFile = world.objectFiles[file];
      return programFolder(this.folder, file, world.buildOf(objectFile));
    };
    this.programs = { sockets: folderOf("sockets"), packets: folderOf("packets") };
  }

  /** The folder of all pins; undefined: no bpffs is mounted. */
  get root(): string | undefined {
    const { bpffs } = this.#world.mounts();
    return bpffs === undefined ? undefined : join(bpffs, PIN_FOLDER);
  }

  /** The folder of all pins. @throws {ProxyError} `host_unsupported`. */
  demandRoot(): string {
    const { root } = this;
    if (root === undefined)
      throw new ProxyError("host_unsupported", "no bpffs is mounted", {
        hint: "mount -t bpf bpf /sys/fs/bpf; in a container, mount the host's there",
      });
    return root;
  }

  /** Those that this process has open, and the folder of all pins as it was when they were looked for; undefined: there are none. */
  get open(): { readonly root: string; readonly maps: ReadonlyMap<EbpfMap, BpfMap> } | undefined {
    return this.#root === undefined ? undefined : { root: this.#root, maps: this.#maps };
  }

  /** The maps that are pinned now; undefined: not all of them are. */
  find(): ReadonlyMap<EbpfMap, BpfMap> | undefined {
    // Where they were the last time: where a bpffs is mounted costs more to tell.
    if (this.#isFoundIn(this.#root)) return this.#maps;
    this.#root = this.root;
    if (this.#isFoundIn(this.#root)) return this.#maps;
    this.close();
    return undefined;
  }

  /** All that is pinned. */
  list(root: string): readonly Pin[] {
    this.#noteOpenings();
    const pins = this.#world.bpf.pins(root);
    // Listing opens them.
    for (const name of WRITTEN_MAPS) this.#takeOpening(root, name);
    return pins;
  }

  /** The maps whose pins somebody has opened since this was asked last: others, but for a process of ours that loads programs. */
  takeOpenings(): ReadonlySet<WrittenMap> {
    this.#noteOpenings();
    const opened = new Set(this.#opened);
    this.#opened.clear();
    return opened;
  }

  /** The maps; they are made and pinned where there are none. @throws {ProxyError} what loading failed with. */
  async ensure(): Promise<ReadonlyMap<EbpfMap, BpfMap>> {
    if (this.#maps.size > 0) return this.#maps;
    const found = this.find();
    if (found !== undefined) return found;
    await this.#load("sockets");
    const made = this.find();
    if (made === undefined) throw new ProxyError("not_found", "what was just pinned is gone", { object: this.folder });
    return made;
  }

  /** Open a file's programs that use these maps; whoever opens them closes them. They are loaded and pinned where they are not. @throws {ProxyError} what loading failed with. */
  async openPrograms(file: ProgramFile): Promise<ReadonlyMap<string, BpfProgram>> {
    const folder = join(this.demandRoot(), this.programs[file]);
    const pins = PROGRAMS_OF[file].map((name) => [name, join(folder, name)] as const);
    if (!pins.every(([, pin]) => this.#world.pinFiles.exists(pin))) await this.#load(file);
    return new Map(pins.map(([name, pin]) => [name, this.#world.bpf.openProgram(pin)]));
  }

  /** Let go of the maps; what is pinned stays. */
  close(): void {
    for (const map of this.#maps.values()) map.close();
    this.#maps = new Map();
    this.#inodes.clear();
  }

  /** Both families may need it at once. */
  #load(file: ProgramFile): Promise<void> {
    const running = this.#loading.get(file);
    if (running !== undefined) return running;
    const loading = this.#loadOnce(file).finally(() => this.#loading.delete(file));
    this.#loading.set(file, loading);
    return loading;
  }

  /** Load a file with the maps that are pinned, and pin what isn't. */
  async #loadOnce(file: ProgramFile): Promise<void> {
    const { bpf, objectFiles } = this.#world;
    const root = this.demandRoot();
    const pins = ALL_MAPS.map((name) => [name, join(root, this.folder, name)] as const);
    // A part of the maps, and programs that use it, are of no use.
    if (!pins.every(([, pin]) => this.#world.pinFiles.exists(pin))) bpf.removePins(join(root, this.folder));
    const maps = Object.fromEntries(pins.map(([name, pin]) => [name, this.#choice(name, pin)]));
    const object = await bpf.load(objectFiles[file], { maps }).catch((error: unknown) => {
      throw this.#refusals.noted(file, error);
    });
    try {
      for (const [name, program] of object.programs) {
        const pin = join(root, this.programs[file], name);
        if (!this.#world.pinFiles.exists(pin)) program.pin(pin);
      }
    } finally {
      object.close();
    }
  }

  /** Whether all maps are pinned there. They are open then. */
  #isFoundIn(root: string | undefined): boolean {
    if (root === undefined) return false;
    const inodes = ALL_MAPS.map((name) => this.#world.pinFiles.inode(this.#pinOf(root, name)));
    if (inodes.includes(undefined)) return false;
    for (const [at, name] of ALL_MAPS.entries()) {
      const inode = inodes[at] ?? 0;
      // Another hand may have put another map there.
      if (this.#inodes.get(name) === inode) continue;
      const pin = this.#pinOf(root, name);
      const map = this.#world.bpf.openMap({ pin });
      this.#maps.get(name)?.close();
      this.#maps.set(name, map);
      this.#inodes.set(name, inode);
      this.#world.pinFiles.takeOpening(pin);
    }
    return true;
  }

  #noteOpenings(): void {
    const { open } = this;
    if (open !== undefined) for (const name of WRITTEN_MAPS) if (this.#takeOpening(open.root, name)) this.#opened.add(name);
  }

  #takeOpening(root: string, name: EbpfMap): boolean {
    return this.#world.pinFiles.takeOpening(this.#pinOf(root, name));
  }

  /** No `join`: it is asked for many times a second. */
  #pinOf(root: string, name: EbpfMap): string {
    return `${root}/${this.folder}/${name}`;
  }

  #choice(name: string, pin: string): MapChoice {
    const entries = this.#sizes[name];
    return entries === undefined ? { pin } : { pin, maxEntries: entries };
  }
}

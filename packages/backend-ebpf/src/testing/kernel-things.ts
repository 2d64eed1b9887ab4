import type { CgroupHook, Direction, LinkInfo, MapInfo, ProgramInfo } from "@turnout/host/bpf";
import type { KernelMap } from "./kernel-maps.ts";
import type { RunnableProgram } from "./program-code.ts";

/** Something of BPF that the kernel in memory has as long as somebody holds it: a handle, a pin, or another thing. */
export abstract class KernelThing {
  readonly id: number;
  #holders = 0;

  constructor(id: number) {
    this.id = id;
  }

  get isHeld(): boolean {
    return this.#holders > 0;
  }

  hold(): this {
    this.#holders += 1;
    return this;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.end();
  }

  /** Nobody holds it any more. */
  protected abstract end(): void;
}

/** A map. */
export class MapThing extends KernelThing {
  readonly map: KernelMap;
  readonly info: MapInfo;

  constructor(id: number, map: KernelMap) {
    super(id);
    this.map = map;
    this.info = { ...map.shape, id, name: map.shape.name.slice(0, NAME_MAX) };
  }

  protected end(): void {
    // Nothing else is held by a map.
  }
}

/** A program, which holds its maps. */
export class ProgramThing extends KernelThing {
  readonly program: RunnableProgram;
  readonly info: ProgramInfo;
  readonly #maps: readonly MapThing[];

  constructor(info: ProgramInfo, program: RunnableProgram, maps: readonly MapThing[]) {
    super(info.id);
    this.info = { ...info, name: info.name.slice(0, NAME_MAX) };
    this.program = program;
    this.#maps = maps;
    for (const map of maps) map.hold();
  }

  protected end(): void {
    for (const map of this.#maps) map.release();
  }
}

/** Where a program may be attached. */
export type Place =
  | { readonly kind: "cgroup"; readonly cgroupId: bigint; readonly hook: CgroupHook }
  | { readonly kind: "tcx"; readonly ifindex: number; readonly direction: Direction };

/** A link, which holds its program. */
export class LinkThing extends KernelThing {
  #program: ProgramThing;
  #place: Place | undefined;

  constructor(id: number, program: ProgramThing, place: Place) {
    super(id);
    this.#program = program.hold();
    this.#place = place;
  }

  get program(): ProgramThing {
    return this.#program;
  }

  /** Undefined: it is detached. */
  get place(): Place | undefined {
    return this.#place;
  }

  replace(program: ProgramThing): void {
    const before = this.#program;
    this.#program = program.hold();
    before.release();
  }

  detach(): void {
    this.#place = undefined;
  }

  info(): LinkInfo {
    const base = { id: this.id, programId: this.#program.id };
    const place = this.#place ?? this.#lastPlace();
    return { ...base, ...place };
  }

  protected end(): void {
    this.#place = undefined;
    this.#program.release();
  }

  /** The kernel tells of a link that is attached to nothing cgroup 0, or device 0. */
  #lastPlace(): Place {
    const { kind } = this.#program.program;
    return kind.is === "cgroup" ? { kind: "cgroup", cgroupId: 0n, hook: kind.hook } : { kind: "tcx", ifindex: 0, direction: "ingress" };
  }
}

/** The kernel keeps so many characters of a name. */
const NAME_MAX = 15;

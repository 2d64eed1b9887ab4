/** A register of 64 bits, as two halves with sign. A pointer's high half is the number of its region, and its low half the offset there. */
export class Register {
  low = 0;
  high = 0;

  set(low: number, high: number): void {
    this.low = low;
    this.high = high;
  }
}

/** A piece of memory that a program may touch. Nothing lies beside it. */
export interface Region {
  readonly view: DataView;
  readonly bytes: Buffer;
  /** Offsets of the fields of 4 bytes that may be written; undefined: all may be. */
  readonly writable: ReadonlySet<number> | undefined;
}

/** A value that pointers of one run lead to, such as a map's element. */
export class Value implements Region {
  readonly view: DataView;
  readonly bytes: Buffer;
  readonly writable: ReadonlySet<number> | undefined;
  /** The number of its region, in the run it was last used in. */
  region = 0;
  run = 0;

  constructor(bytes: Buffer, writable?: ReadonlySet<number>) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.writable = writable;
  }

  /** A run begins whose context this is. */
  begin(_cpu: Cpu): void {
    // A context that leads to nothing else has nothing to do.
  }
}

/** Something that a program does and no verifier would let pass. */
export class ProgramFault extends Error {
  override readonly name = "ProgramFault";
}

/** A kernel's function: takes its arguments from registers 1 to 5, and leaves its result in register 0. */
export type KernelFunction = (cpu: Cpu) => void;

/** What one run happens in. */
export interface RunSetting {
  /** By their numbers in the object file. */
  readonly maps: readonly object[];
  readonly context: Value;
  /** Whatever the kernel's functions need to know. */
  readonly about: unknown;
}

/** One step of a program; gives the number of the next, or {@link END}. */
export type Operation = () => number;

/** What follows a program's last step. */
export const END = -1;
/** More than any verifier lets pass. */
const STEPS_MAX = 1_000_000;
const FRAMES_MAX = 8;
const STACK_BYTES = 512;
/** The high half of a pointer to a map; a region's number is far below. */
const MAP_POINTER = 0x4000_0000;
/** What lies on a stack where nothing was written. */
const GARBAGE = 0xa5;
const SAVED = [6, 7, 8, 9] as const;

interface Frame {
  readonly next: number;
  readonly saved: readonly number[];
}

/** Runs translated programs, one at a time. */
export class Cpu {
  readonly registers: readonly Register[] = Array.from({ length: 11 }, () => new Register());
  readonly regions: (Region | undefined)[] = [undefined];
  #setting: RunSetting | undefined;
  #frames: Frame[] = [];
  #run = 0;

  constructor() {
    for (let frame = 0; frame < FRAMES_MAX; frame += 1) this.regions.push(new Value(Buffer.alloc(STACK_BYTES)));
  }

  /** Carry out a program from its entry on; gives register 0. @throws {ProgramFault} */
  run(operations: readonly Operation[], entry: number, setting: RunSetting): number {
    this.#setting = setting;
    this.#run += 1;
    this.#frames = [];
    this.regions.length = FRAMES_MAX + 1;
    this.#beginFrame();
    this.register(1).set(0, this.regionOf(setting.context));
    setting.context.begin(this);
    let next = entry;
    let left = STEPS_MAX;
    try {
      while (next !== END) {
        const operation = operations[next];
        if (operation === undefined) throw new ProgramFault("there is no such instruction");
        if ((left -= 1) < 0) throw new ProgramFault("the program does not end");
        next = operation();
      }
    } catch (error) {
      // A RangeError is of a view that is read beyond its end.
      if (!(error instanceof RangeError) && !(error instanceof ProgramFault)) throw error;
      throw new ProgramFault(`instruction ${next} after ${STEPS_MAX - left} steps: ${error.message}`, { cause: error });
    }
    return this.register(0).low;
  }

  /** What the run happens in. */
  get setting(): RunSetting {
    if (this.#setting === undefined) throw new ProgramFault("nothing runs");
    return this.#setting;
  }

  register(number: number): Register {
    const register = this.registers[number];
    if (register === undefined) throw new ProgramFault(`there is no register ${number}`);
    return register;
  }

  /** The number of a value's region in this run. */
  regionOf(value: Value): number {
    if (value.run !== this.#run || this.regions[value.region] !== value) {
      value.run = this.#run;
      value.region = this.regions.push(value) - 1;
    }
    return value.region;
  }

  /** Give a program a pointer to a value; undefined: none. */
  giveBack(value: Value | undefined): void {
    this.register(0).set(0, value === undefined ? 0 : this.regionOf(value));
  }

  /** Give a program a number of 32 bits with sign. */
  answer(number: number): void {
    this.register(0).set(number | 0, number < 0 ? -1 : 0);
  }

  /** The high half of a pointer to a map. */
  pointerToMap(map: number): number {
    return MAP_POINTER + map;
  }

  /** The map that a register points to. */
  mapAt(number: number): object {
    const { low, high } = this.register(number);
    const map = low === 0 ? this.setting.maps[high - MAP_POINTER] : undefined;
    if (map === undefined) throw new ProgramFault("this is no pointer to a map");
    return map;
  }

  /** The bytes that a register points to, not copied. */
  bytesAt(number: number, length: number): Buffer {
    const { low, high } = this.register(number);
    const bytes = this.regions[high]?.bytes;
    if (bytes === undefined || low < 0 || length < 0 || low + length > bytes.length) throw outside(low, high);
    return bytes.subarray(low, low + length);
  }

  /** As {@link Cpu.bytesAt}, to be written to. */
  writableAt(number: number, length: number): Buffer {
    const { high } = this.register(number);
    if (this.regions[high]?.writable !== undefined) throw new ProgramFault("this may not be written");
    return this.bytesAt(number, length);
  }

  /** The value that a register points to the beginning of. */
  valueAt(number: number): Value {
    const { low, high } = this.register(number);
    const value = this.regions[high];
    if (low !== 0 || !(value instanceof Value)) throw outside(low, high);
    return value;
  }

  /** Call a program's own function. */
  enter(target: number, next: number): number {
    if (this.#frames.length + 1 >= FRAMES_MAX) throw new ProgramFault("calls go too deep");
    this.#frames.push({ next, saved: SAVED.flatMap((number) => [this.register(number).low, this.register(number).high]) });
    this.#beginFrame();
    return target;
  }

  /** Return from it; {@link END} from the program. */
  leave(): number {
    const frame = this.#frames.pop();
    if (frame === undefined) return END;
    for (const [index, number] of SAVED.entries()) this.register(number).set(frame.saved[2 * index] ?? 0, frame.saved[2 * index + 1] ?? 0);
    this.register(10).set(STACK_BYTES, this.#frames.length + 1);
    return frame.next;
  }

  #beginFrame(): void {
    const frame = this.#frames.length + 1;
    this.regions[frame]?.bytes.fill(GARBAGE);
    this.register(10).set(STACK_BYTES, frame);
  }
}

/** An access to what is no memory of the program's. */
export function outside(low: number, high: number): ProgramFault {
  return new ProgramFault(`an access is outside of memory: region ${high}, offset ${low}`);
}

import { invariant } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { Conntrack } from "./conntrack.ts";
import { Cpu, END, ProgramFault, Value } from "./cpu.ts";
import { errno } from "./errno.ts";
import { HELPERS } from "./helper-functions.ts";
import { Journal } from "./journal.ts";
import { makeMap } from "./kernel-maps.ts";
import type { KernelMap } from "./kernel-maps.ts";
import type { AskingSocket, PacketAbout, RunAbout } from "./run-about.ts";

/** The region of a program's stack, which ends at 512. */
const STACK = 1;
const ABOUT: RunAbout = { nowNs: () => 5_000_000_001n, random: () => 0.75, listens: () => false, socket: undefined, packet: undefined };
const CONTEXT = new Value(Buffer.alloc(16));

function hash(): KernelMap {
  const shape = { name: "test", type: "hash", keySize: 4, valueSize: 4, maxEntries: 1, flags: 0 } as const;
  const map = makeMap(shape, new Journal());
  invariant(map !== undefined, "the type is known");
  return map;
}

/** Have a helper called, with what `prepare` leaves in registers; gives register 0 with sign, both halves, and the last 64 bytes of the stack. */
function call(
  helper: number,
  prepare: (cpu: Cpu, context: number) => void,
  about: Partial<RunAbout> = {},
  maps: readonly KernelMap[] = [],
): { readonly low: number; readonly high: number; readonly stack: string } {
  const cpu = new Cpu();
  const begin = (): number => {
    prepare(cpu, cpu.regionOf(CONTEXT));
    return 1;
  };
  const ask = (): number => {
    HELPERS[helper]?.(cpu);
    return END;
  };
  cpu.run([begin, ask], 0, { maps, context: CONTEXT, about: { ...ABOUT, ...about } });
  const { low, high } = cpu.register(0);
  return { low, high, stack: cpu.regions[STACK]?.bytes.toString("hex", 448) ?? "" };
}

const MAP = { find: 1, update: 2, delete: 3 } as const;

describe("helpers of maps", () => {
  /** A map in register 1, a key of 4 bytes in 2, a value of 4 bytes in 3, and flags in 4. */
  const withKey =
    (key: number, flags = 0) =>
    (cpu: Cpu): void => {
      cpu.register(1).set(0, cpu.pointerToMap(0));
      cpu.regions[STACK]?.view.setUint32(500, key, true);
      cpu.regions[STACK]?.view.setUint32(504, 42, true);
      cpu.register(2).set(500, STACK);
      cpu.register(3).set(504, STACK);
      cpu.register(4).set(flags, 0);
    };

  it("find, write and delete what is there, and refuse by the kernel's numbers", () => {
    const maps = [hash()];
    const ask = (helper: number, key: number, flags = 0): number => call(helper, withKey(key, flags), {}, maps).low;
    expect(call(MAP.find, withKey(1), {}, maps)).toMatchObject({ low: 0, high: 0 });
    expect([ask(MAP.update, 1, 2), ask(MAP.update, 1, 1), ask(MAP.update, 1, 1)]).toEqual([-errno("ENOENT"), 0, -errno("EEXIST")]);
    expect([ask(MAP.update, 2), ask(MAP.update, 1, 9)]).toEqual([-errno("E2BIG"), -errno("EINVAL")]);
    expect(call(MAP.find, withKey(1), {}, maps).high).toBeGreaterThan(STACK);
    expect(maps[0]?.all().map(([, { bytes }]) => bytes.readUInt32LE())).toEqual([42]);
    expect([ask(MAP.delete, 1), ask(MAP.delete, 1)]).toEqual([0, -errno("ENOENT")]);
  });

  it("take nothing but maps, and keys that are whole", () => {
    expect(() => call(MAP.find, (cpu) => cpu.register(1).set(0, STACK))).toThrow("this is no pointer to a map");
    const short = (cpu: Cpu): void => {
      withKey(1)(cpu);
      cpu.register(2).set(510, STACK);
    };
    expect(() => call(MAP.find, short, {}, [hash()])).toThrow("an access is outside of memory");
  });
});

describe("helpers that tell", () => {
  const nothing = (): void => undefined;
  const withContext = (cpu: Cpu, context: number): void => cpu.register(1).set(0, context);

  it("the time and a random number", () => {
    expect(call(5, nothing)).toMatchObject({ low: 5_000_000_001 % 2 ** 32, high: 1 });
    expect(call(7, nothing)).toMatchObject({ low: -(2 ** 30), high: 0 });
  });

  it("who asks, and with which error the call fails", () => {
    const socket: AskingSocket = { cookie: 2n ** 32n + 7n, namespace: 9n, result: 0 };
    expect(call(46, withContext, { socket })).toMatchObject({ low: 7, high: 1 });
    expect(call(122, withContext, { socket })).toMatchObject({ low: 9, high: 0 });
    expect(call(187, (cpu) => cpu.register(1).set(-111, -1), { socket }).low).toBe(0);
    expect(socket.result).toBe(-111);
  });

  it.each([
    [46, "no socket asks here"],
    [122, "no socket asks here"],
    [187, "no socket asks here"],
    [68, "no packet is here"],
    [69, "no packet is here"],
  ])("nothing of what isn't there: helper %i", (helper, why) => expect(() => call(helper, withContext)).toThrow(why));

  it.each([46, 68, 69, 122])("nothing where the first argument isn't the context: helper %i", (helper) => {
    expect(() => call(helper, (cpu) => cpu.register(1).set(448, STACK))).toThrow(ProgramFault);
  });
});

describe("helpers of packets", () => {
  const packet: PacketAbout = {
    bytes: Buffer.from("00112233445566778899", "hex"),
    conntrack: new Conntrack(() => 0),
    sourceTowards: (address) => (address[15] === 1 ? Buffer.from("00000000000000000000ffffac120001", "hex") : undefined),
  };

  /** Copy so many bytes from a place to the stack's last 64 bytes. */
  const load =
    (at: number, length: number, from = 1) =>
    (cpu: Cpu, context: number): void => {
      for (const [register, [low, high]] of [
        [0, context],
        [at, 0],
        [448, STACK],
        [length, 0],
        [from, 0],
      ].entries())
        cpu.register(register + 1).set(low ?? 0, high ?? 0);
    };

  it("copy bytes, and zeros where there are none", () => {
    expect(call(68, load(2, 4), { packet })).toMatchObject({ low: 0, stack: expect.stringMatching(/^22334455a5/) as unknown });
    expect(call(68, load(8, 4), { packet })).toMatchObject({
      low: -errno("EFAULT"),
      stack: expect.stringMatching(/^00000000a5/) as unknown,
    });
    expect(() => call(68, load(0, 4, 0), { packet })).toThrow("from the IP header on");
  });

  /** Ask for the route to 10.0.0.`last`. */
  const route =
    (last: number, flags = 20) =>
    (cpu: Cpu, context: number): void => {
      const question = cpu.regions[STACK]?.bytes.fill(0, 448);
      question?.writeUInt8(2, 448);
      question?.set([10, 0, 0, last], 448 + 32);
      for (const [register, [low, high]] of [
        [0, context],
        [448, STACK],
        [64, 0],
        [flags, 0],
      ].entries())
        cpu.register(register + 1).set(low ?? 0, high ?? 0);
    };

  it("tell the source address of a route, and what there is no route or no such question to", () => {
    const { low, stack } = call(69, route(1), { packet });
    expect([low, stack.slice(32, 40)]).toEqual([0, "ac120001"]);
    expect([call(69, route(2), { packet }).low, call(69, route(1, 0), { packet }).low]).toEqual([9, -errno("EINVAL")]);
  });
});

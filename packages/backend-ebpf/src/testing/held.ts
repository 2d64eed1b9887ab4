import { ProgramFault } from "./cpu.ts";
import type { Cpu, Value } from "./cpu.ts";

/** What a program has of the kernel and must give back, by its run's setting. */
const held = new WeakMap<object, Set<Value>>();

/** A program has it from now on. */
export function hold<T extends Value>(cpu: Cpu, value: T): T {
  let all = held.get(cpu.setting);
  if (all === undefined) held.set(cpu.setting, (all = new Set()));
  all.add(value);
  return value;
}

/** The program gives it back. */
export function release(cpu: Cpu, value: Value): void {
  held.get(cpu.setting)?.delete(value);
}

/** Whether the program has it still. */
export function isHeld(cpu: Cpu, value: Value): boolean {
  return held.get(cpu.setting)?.has(value) === true;
}

/** Fail a run that has not given back everything, as the verifier would. @throws {ProgramFault} */
export function requireAllReleased(setting: object): void {
  if ((held.get(setting)?.size ?? 0) > 0) throw new ProgramFault("the program has not given back a flow or a socket");
}

/**
 * Windows on this machine, by Wine: for tests of what only Windows has.
 *
 * @packageDocumentation
 */
export { PACKED_FIRST_HOUR, PACKED_NODE, packForWindows } from "./pack.ts";
export { WineMachine } from "./wine-machine.ts";
export type { WindowsLibrary, WindowsProgram, WindowsResult, RunningProgram } from "./wine-machine.ts";

/**
 * What a process gives the core: its clock. Everything else in core is pure.
 *
 * @packageDocumentation
 */
export { systemClock } from "./system-clock.ts";

/**
 * What tests of the core, of backends and of third parties build with: API objects in short, views of them, a clock that
 * stands still, and a host that exists in memory and fails on command.
 *
 * @packageDocumentation
 */
export * from "./clock.ts";
export * from "./history.ts";
export * from "./objects.ts";
export * from "./random.ts";
export * from "./records.ts";
export * from "./sync-bench.ts";
export * from "./toy-backend.ts";
export * from "./view.ts";

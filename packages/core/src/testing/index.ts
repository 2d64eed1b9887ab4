/**
 * What tests of the core, of backends and of third parties build with: API objects in short, views of them, a clock that
 * stands still, a log that keeps its lines, and a proxy that syncs when a test says so.
 *
 * @packageDocumentation
 */
export * from "./clock.ts";
export * from "./fixtures.ts";
export * from "./history.ts";
export * from "./objects.ts";
export * from "./random.ts";
export * from "./recording-log.ts";
export * from "./replacing.ts";
export * from "./test-proxy.ts";
export * from "./view.ts";

/**
 * A host in memory for the conformance kit and for tests: addresses and sockets, and nothing of this machine. And a soak of the real thing.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { UserspaceFakeHost } from "./fake-host.ts";
export { FakeSockets } from "./fake-sockets.ts";
export type { EndpointBehaviour, FakeClient } from "./fake-sockets.ts";
export { soak } from "./soak.ts";
export type { Holdings, SoakOptions, SoakReport } from "./soak.ts";

/**
 * The winkernel backend's host in memory: an HNS as strict as what is known of the real one, and a packet's way through its load balancers; and an HNS that
 * answers as a recorded one did.
 *
 * @packageDocumentation
 */
export { firstHour } from "../first-hour/first-hour.ts";
export type { Finding, FirstHourOptions } from "../first-hour/first-hour.ts";
export { parseRecording, replayedHns } from "../first-hour/recording.ts";
export type { RecordedCall } from "../first-hour/recording.ts";
export { createFakeHost } from "./fake-host.ts";
export type { FakeHostOptions, WinkernelFakeHost } from "./fake-host.ts";
export { FakeHns } from "./fake-hns.ts";
export type { FakeEndpoint, FakeHnsOptions, FakeLoadBalancer, FakeNetwork } from "./fake-hns.ts";

/**
 * Fakes of what `@turnout/host` offers, as strict as the real things.
 * @packageDocumentation
 */
export { countedSource } from "./counted-source.ts";
export { createFakeExec } from "./fake-exec.ts";
export { createFakeIp } from "./fake-ip.ts";
export type { FakeLinks } from "./fake-ip.ts";
export { createFakeLog } from "./fake-log.ts";
export type { FakeLog } from "./fake-log.ts";
export { createFakeNetlink } from "./fake-netlink.ts";
export type { FakeNetlink } from "./fake-netlink.ts";
export { nftTableIn } from "./nft-table-in.ts";
export { createFakeSysctl } from "./fake-sysctl.ts";
export type { FakeSysctl } from "./fake-sysctl.ts";
export { startedLater } from "./started-later.ts";
export { createTestNamespace } from "./test-namespace.ts";
export type { TestNamespace } from "./test-namespace.ts";

/**
 * ipset and the kernel's sets behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { FakeIpset } from "./fake-ipset.ts";

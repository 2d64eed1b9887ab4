/**
 * IPVS in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { FakeIpvs } from "./fake-ipvs.ts";

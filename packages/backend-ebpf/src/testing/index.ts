/**
 * The conformance kit on this machine's kernel: the eBPF backend has no host in memory, its programs run where they will run.
 *
 * @packageDocumentation
 */
export { examine } from "./examine.ts";

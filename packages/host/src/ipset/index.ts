/**
 * The program ipset: its version, reading sets, changing them. What is written with it: `@turnout/host/ipset/text`; its fake:
 * `@turnout/fakes/ipset`.
 *
 * @packageDocumentation
 */
export { IpsetTool } from "./tool.ts";
export { ipsetError, refusedLine } from "./tool.ts";

/**
 * The program ipset: its version, reading sets, changing them. What is written with it: `@turnout/host/ipset/text`; its fake:
 * `@turnout/host/testing/ipset`.
 *
 * @packageDocumentation
 */
export { IpsetTool } from "./tool.ts";

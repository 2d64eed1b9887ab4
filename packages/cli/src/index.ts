/**
 * The `turnout` command as a library: for tests and for those who build their own command around it.
 *
 * @packageDocumentation
 */
export type { Environment } from "./environment.ts";
export { createProgram, runProgram } from "./program.ts";
export { chooseBackend, KNOWN_BACKENDS, loadBackend } from "./registry.ts";
export type { BackendChoice, KnownBackend } from "./registry.ts";

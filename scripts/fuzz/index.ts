export { INPUT_BYTES_MAX } from "./target.ts";
export type { FuzzTarget } from "./target.ts";

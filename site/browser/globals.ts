export { Buffer } from "buffer/index.js";

/** What little is asked of Node's process. */
export const process: { readonly platform: string; readonly version: string; readonly env: Readonly<Record<string, string>> } = {
  platform: "linux",
  version: "a browser",
  env: {},
};

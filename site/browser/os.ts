import { ERRNO } from "./data.ts";

/** As `constants` of node:os, for system errors. */
export const constants: { readonly errno: Readonly<Record<string, number>> } = { errno: ERRNO };

/** As `networkInterfaces` of node:os: a browser tells of none. */
export function networkInterfaces(): Readonly<Record<string, never>> {
  return {};
}

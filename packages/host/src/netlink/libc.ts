import { createRequire } from "node:module";
import { ProxyError } from "@turnout/core";
import type koffiPackage from "koffi";

/** The package that calls C. */
export type Koffi = typeof koffiPackage;

/** A library of C that it has loaded. */
export type Library = ReturnType<Koffi["load"]>;

const load = createRequire(import.meta.url);

/**
 * Load libc, with the package that calls it.
 *
 * Shape: on first use, as loading koffi takes 30 ms and most processes need none of it.
 * @throws {ProxyError} `host_unsupported` where koffi has no build for this machine, or there is no glibc.
 */
export function loadLibc(): { readonly koffi: Koffi; readonly libc: Library } {
  try {
    const koffi = load("koffi") as Koffi;
    return { koffi, libc: koffi.load("libc.so.6") };
  } catch (error) {
    throw new ProxyError("host_unsupported", "libc could not be loaded", {
      hint: "npm install koffi; a glibc system is needed",
      cause: error,
    });
  }
}

import { ProxyError } from "@turnout/core";
import { loadLibc } from "../netlink/libc.ts";

/** Of libc: how many bytes of free memory to keep; tells whether any was given back. */
type Trim = (padBytes: number) => number;

let trim: Trim | undefined;

/**
 * Give the memory of this process that malloc holds free back to the system.
 *
 * Units: some ms. What V8's compilers and large buffers took lies between what is still in use, and malloc gives nothing of that back by itself.
 * Edges: nothing happens where there is no glibc.
 * @source malloc_trim(3): since glibc 2.8 it releases whole pages from the middle of all arenas
 */
export function trimMemory(): void {
  trim ??= loadTrim();
  trim(0);
}

function loadTrim(): Trim {
  try {
    return loadLibc().libc.func("int malloc_trim(size_t pad)") as Trim;
  } catch (error) {
    if (!ProxyError.is(error, "host_unsupported")) throw error;
    return () => 0;
  }
}

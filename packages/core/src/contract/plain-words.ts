import type { KernelObject, ObjectWords } from "./backend.ts";

/** Words for an object of a backend that has none of its own. Pure. */
export function plainWords({ kind, key }: KernelObject): ObjectWords {
  return { what: `${kind} ${key}` };
}

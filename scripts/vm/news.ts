/** What a guest tells while it runs, a line each. */
export type VmMessages =
  /** The program has been started. */
  | { readonly kind: "started" }
  /** The first process gave up before that; the guest's console says why. */
  | { readonly kind: "broken" }
  /** Modules that could not be loaded, and modprobe's reasons. */
  | { readonly kind: "unloaded"; readonly modules: readonly string[]; readonly reason: string }
  | { readonly kind: "exit"; readonly code: number }
  /** A line that the program itself wrote to the file that TURNOUT_VM_REPORT names. */
  | { readonly kind: "report"; readonly line: string };

/**
 * Read a line of a guest's third console. Pure.
 * Edges: what is none of the first process's own lines is the program's; a program that wants to be told apart writes JSON.
 */
export function parseNews(line: string): VmMessages {
  if (line === "started" || line === "broken") return { kind: line };
  const [, code] = /^exit (\d+)$/.exec(line) ?? [];
  if (code !== undefined) return { kind: "exit", code: Number(code) };
  const [, reason] = /^unloaded (.*)$/.exec(line) ?? [];
  return reason === undefined ? { kind: "report", line } : { kind: "unloaded", modules: modulesNamedIn(reason), reason };
}

/**
 * Find the modules that modprobe complains about.
 * @source kmod 30: "modprobe: WARNING: Module NAME not found in directory …", "modprobe: ERROR: could not insert 'NAME': …"
 */
function modulesNamedIn(reason: string): readonly string[] {
  return [...reason.matchAll(/Module (\S+) not found|could not insert '([^']+)'/g)].map((match) => match[1] ?? match[2] ?? "");
}

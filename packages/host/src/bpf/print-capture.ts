import type { Libbpf } from "./libbpf-calls.ts";

/** Enough for any one message. */
const MESSAGE_BYTES = 4096;
/** Warnings and errors. @source bpf/libbpf.h LIBBPF_WARN */
const WARNING = 0;

let print: ReturnType<typeof makePrint> | undefined;

/**
 * Collect the warnings that libbpf gives while `run` goes on: what it says nowhere else, such as which kfunc a kernel lacks.
 *
 * Edges: one at a time, as libbpf has one place for all that it prints; outside of it nothing is printed. Empty on machines other than
 * x64, where handing on a va_list was not tried.
 */
export async function capturePrint<T>(
  lib: Libbpf,
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly warnings: readonly string[] }> {
  if (process.arch !== "x64") return { result: await run(), warnings: [] };
  print ??= makePrint(lib);
  print.lines.length = 0;
  lib.setPrint(print.callback);
  try {
    const result = await run();
    return { result, warnings: warningLines(print.lines.join("")) };
  } finally {
    lib.setPrint(undefined);
  }
}

function makePrint(lib: Libbpf): { readonly callback: bigint; readonly lines: string[] } {
  const lines: string[] = [];
  const buffer = Buffer.allocUnsafeSlow(MESSAGE_BYTES);
  const callback = lib.printCallback((level, format, args) => {
    if (level !== WARNING) return 0;
    const length = lib.vsnprintf(buffer, buffer.length, format, args);
    lines.push(buffer.toString("utf8", 0, Math.min(Math.max(0, length), buffer.length - 1)));
    return 0;
  });
  return { callback, lines };
}

/**
 * Take from libbpf's text the lines that say something: without its name, the verifier's log between, and that the object can't be loaded. Pure.
 */
export function warningLines(text: string): readonly string[] {
  const withoutLog = text.replaceAll(/^libbpf: .*-- BEGIN PROG LOAD LOG --\n[\s\S]*?-- END PROG LOAD LOG --\n/gm, "");
  return withoutLog
    .split("\n")
    .map((line) => line.replace(/^libbpf: /, "").trim())
    .filter((line) => line !== "" && !line.startsWith("failed to load object ") && !/: failed to load: -\d+$/.test(line));
}

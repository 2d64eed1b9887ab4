/** Ask until the answer is yes; gives how long that took, in ms. @throws {Error} after `limitMs`, or what asking throws. */
export async function until(what: string, limitMs: number, isSo: () => Promise<boolean> | boolean): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    if (await isSo()) return performance.now() - startMs;
    if (performance.now() - startMs > limitMs) throw new Error(`not within ${limitMs / 1_000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

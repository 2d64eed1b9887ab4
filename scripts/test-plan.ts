import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/**
 * Test files of `npm run test:rest`: whole kernel kits, kill and upgrade, virtual machines, Wine, a browser, packing, a local registry. A new suite that
 * takes more than 20 seconds belongs here.
 */
export const REST: readonly string[] = [
  "e2e/*.test.ts",
  "examples/*.test.ts",
  "packages/backend-ebpf/src/{module,node,packets,sockets}-kernel.test.ts",
  "packages/backend-winkernel/src/native/wine.test.ts",
  "packages/cli/src/demo/demo.test.ts",
  "packages/cli/src/{init-only-in-vm,kube-start,web-page}.test.ts",
  "packages/host/src/**/own-addresses-kernel.test.ts",
  "packages/*/src/**/ipvs-kernel.test.ts",
  "packages/lab/src/cluster-in-vm.test.ts",
  "scripts/packages.test.ts",
  "scripts/vm/run-in-vm.test.ts",
  "site/site.test.ts",
];

/** Files of which `npm test` runs a share that changes by date, and `npm run test:rest` all. */
export const KERNEL_KITS: readonly string[] = [
  "e2e/conformance.test.ts",
  "packages/backend-*/src/testing/real-*-scenarios.test.ts",
  "packages/backend-ebpf/src/conformance.test.ts",
  "packages/backend-ebpf/src/conformance.test.ts",
];

/** Where the seconds are recorded: `TURNOUT_RECORD_SECONDS=1 npm test` and the same with `npm run test:rest`. */
export const SECONDS_FILE: URL = new URL("test-seconds.json", import.meta.url);

/** Seconds that files took in a run of their own command on a quiet machine with two cores, by path. Files of less than a second are left out. */
export function recordedSeconds(): Readonly<Record<string, number>> {
  return JSON.parse(readFileSync(SECONDS_FILE, "utf8")) as Readonly<Record<string, number>>;
}

/** Add what files took in this run to what is recorded. Pure. */
export function withSeconds(
  recorded: Readonly<Record<string, number>>,
  took: ReadonlyMap<string, number>,
): Readonly<Record<string, number>> {
  const all = { ...recorded, ...Object.fromEntries(Array.from(took, ([path, ms]) => [path, Math.round(ms / 1000)])) };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, seconds]) => seconds > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const STARTS_CHILDREN = /from "node:(child_process|worker_threads)"|\bnodeCommand\(/;
const IMPORTED = /from "(\.{1,2}\/[^"]+)"/g;

/**
 * Whether a test starts processes: what these load is not in its imports, so `--changed` can't know whether a change concerns it.
 *
 * Shape: looks at the test and at what it imports by relative path from folders of tests (`test-support`, `e2e`, `scripts`, …).
 * @param read a file's text
 */
export function startsChildren(path: string, read: (path: string) => string): boolean {
  const seen = new Set<string>();
  const looks = (file: string): boolean => {
    if (seen.has(file)) return false;
    seen.add(file);
    const text = read(file);
    if (STARTS_CHILDREN.test(text)) return true;
    const imported = Array.from(text.matchAll(IMPORTED), ([, to = ""]) => resolve(dirname(file), to));
    return imported.some((one) => !/\/packages\/[^/]+\/src\/(?!.*test-support)/.test(one) && looks(one));
  };
  return looks(path);
}

/** Every test file that starts processes, as absolute paths. */
export function testsWithChildren(root: string, files: readonly string[]): readonly string[] {
  // What looks like an import may be a text in a test.
  const read = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");
  return files.map((file) => join(root, file)).filter((path) => startsChildren(path, read));
}

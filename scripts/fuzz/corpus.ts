import { createHash } from "node:crypto";
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { FuzzFinding, FuzzTarget } from "./target.ts";

/** A target, and where its corpus lies. */
export interface PlacedTarget {
  readonly target: FuzzTarget;
  readonly folder: string;
}

/** The repository that this file is in. */
export const REPOSITORY: string = join(import.meta.dirname, "../..");

/** Load the targets of all packages, sorted by name. */
export async function loadTargets(repository: string): Promise<readonly PlacedTarget[]> {
  const files = globSync("packages/*/src/test-support/fuzz-targets.ts", { cwd: repository });
  const lists = files.map(async (file): Promise<readonly PlacedTarget[]> => {
    const path = join(repository, file);
    const { FUZZ_TARGETS } = (await import(pathToFileURL(path).href)) as { readonly FUZZ_TARGETS: readonly FuzzTarget[] };
    const folder = join(dirname(path), "../../test/fuzz");
    return FUZZ_TARGETS.map((target) => ({ target, folder: join(folder, target.name) }));
  });
  return (await Promise.all(lists)).flat().toSorted((a, b) => (a.target.name < b.target.name ? -1 : 1));
}

/** Read a target's corpus, sorted by file name. @throws an error of node:fs when there is none. */
export function readCorpus({ target, folder }: PlacedTarget): readonly Buffer[] {
  const names = readdirSync(folder).toSorted();
  return names.map((name) => {
    const content = readFileSync(join(folder, name));
    return target.form === "bytes" ? Buffer.from(content.toString("latin1").replace(/\s/g, ""), "hex") : content;
  });
}

/** Put a finding's input into the corpus, so that it is played from now on; gives the file's path. */
export function saveFinding({ target, folder }: PlacedTarget, { input }: FuzzFinding): string {
  const path = join(folder, `found-${createHash("sha256").update(input).digest("hex").slice(0, 12)}.input`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, target.form === "bytes" ? `${input.toString("hex")}\n` : input);
  return path;
}

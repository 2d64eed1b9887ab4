import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A Markdown page of the repository. */
export interface Source {
  /** Relative to the repository. */
  readonly path: string;
  readonly text: string;
}

/** What people read: not what changesets keeps, and no fixtures. */
const PAGES = [
  "*.md",
  "docs/**/*.md",
  "packages/*/README.md",
  "packages/client/proto/README.md",
  "deploy/**/*.md",
  "examples/*/README.md",
  "e2e/README.md",
];

/** Read every page of documentation of the repository, sorted by path. */
export function readSourcePages(root: string): readonly Source[] {
  return globSync(PAGES, { cwd: root, exclude: ["**/node_modules/**", "**/CHANGELOG.md"] })
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

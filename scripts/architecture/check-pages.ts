import type { Finding } from "./finding.ts";

/** A Markdown page of the repository. */
export interface Page {
  /** Relative to the repository. */
  readonly path: string;
  readonly text: string;
}

/** Folders that every package may have, and that mean the same everywhere. */
const COMMON_FOLDERS: readonly string[] = ["gen", "test-support"];

/**
 * Check that what a package's README lists under `## Inside` is there: files of `src`, without `.ts`, and folders; and that no folder of `src` is missing
 * in the list. Pure.
 * @param sources paths of all files of the repository's packages
 */
export function checkInside(pages: readonly Page[], sources: readonly string[]): Finding[] {
  return pages.flatMap(({ path, text }) => {
    const [, folder] = /^(packages\/[^/]+)\/README\.md$/.exec(path) ?? [];
    const [before = "", inside = ""] = text.split(/^## Inside\n/m);
    if (folder === undefined) return [];
    const below = sources.flatMap((source) => (source.startsWith(`${folder}/src/`) ? [source.slice(folder.length + 5).split("/")] : []));
    const folders = new Set(below.flatMap(([name = "", ...rest]) => (rest.length === 0 || COMMON_FOLDERS.includes(name) ? [] : [name])));
    const missing = [...folders].filter((name) => !inside.includes(`\`${name}\``) && !inside.includes(`\`${name}/`));
    const [section = ""] = inside.split(/^## /m);
    const first = before.split("\n").length + 1;
    const listed = section.split("\n").flatMap((line, index) => {
      const [, cell = ""] = /^\| ([^|]*)\|/.exec(line) ?? [];
      const isThere = (name: string): boolean =>
        sources.some((source) => source === `${folder}/src/${name}.ts` || source.startsWith(`${folder}/src/${name.replace(/\/$/, "")}/`));
      return [...cell.matchAll(/`([^`]+)`/g)]
        .flatMap(([, name = ""]) => (isThere(name) ? [] : [name]))
        .map((name) => ({ rule: "pages", path, line: first + index, subject: name, what: `${folder}/src has no ${name}` }));
    });
    const what = (name: string): string => `${folder}/src/${name} is missing in the table below "## Inside"`;
    return [...listed, ...missing.map((name) => ({ rule: "pages", path, line: first, subject: name, what: what(name) }))];
  });
}

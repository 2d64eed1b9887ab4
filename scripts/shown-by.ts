import { tablesOf } from "./written-part.ts";

/** A test, or a scenario of the conformance kit, that a page names. */
export interface Cited {
  /** Path in the repository; undefined: a scenario of the kit. */
  readonly file: string | undefined;
  /** How its title begins; undefined: the whole file. */
  readonly title: string | undefined;
}

/** A row of a table. */
export interface Row {
  /** The table's columns. */
  readonly columns: readonly string[];
  readonly cells: readonly string[];
}

/** Read the tables of a page's section with this heading, subsections among it. */
export function readRows(page: string, heading: string): readonly Row[] {
  const [, section = ""] = page.split(`\n## ${heading}\n`);
  const [own = ""] = section.split("\n## ");
  return tablesOf(own).flatMap(({ columns, rows }) => rows.map((cells) => ({ columns, cells })));
}

/** Find what a cell cites: `a/b.test.ts` "title", "another title"; kit "scenario". */
export function citedIn(cell: string): readonly Cited[] {
  return [...cell.matchAll(/(?:`([^`]+\.test\.ts)`|\bkit\b)((?:,? "[^"]+")*)/g)].flatMap(([, file, quoted = ""]): readonly Cited[] => {
    const titles = [...quoted.matchAll(/"([^"]+)"/g)].map(([, title]) => title);
    return titles.length === 0 ? [{ file, title: undefined }] : titles.map((title) => ({ file, title }));
  });
}

/** Tell whether a file has a title, or a scenario a name, that begins so. Pure. */
export function hasTitle(text: string, title: string): boolean {
  return ['"', "`"].some((quote) => text.includes(quote + title));
}

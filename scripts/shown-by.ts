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

/** Read the tables of a page's section with this heading, subsections among it. A `|` between backticks is not a cell's end. */
export function readRows(page: string, heading: string): readonly Row[] {
  const start = page.indexOf(`\n## ${heading}\n`);
  if (start === -1) return [];
  const end = page.indexOf("\n## ", start + 1);
  const rows: Row[] = [];
  let columns: readonly string[] | undefined;
  for (const line of page.slice(start, end === -1 ? undefined : end).split("\n")) {
    if (!line.startsWith("|")) columns = undefined;
    else if (columns === undefined) columns = cellsOf(line);
    else if (!/^\|[-|]+$/.test(line)) rows.push({ columns, cells: cellsOf(line) });
  }
  return rows;
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

function cellsOf(line: string): readonly string[] {
  const parts = line.match(/(?:`[^`]*`|[^|`])+/g) ?? [];
  return parts.map((cell) => cell.trim());
}

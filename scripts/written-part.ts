/**
 * Put a text between two marks of a page, in place of what is there. Pure.
 *
 * Shape: the text stands on lines of its own; the rest of the page is people's. @throws {Error} when the page lacks the marks.
 */
export function withWritten(page: string, [begin, end]: readonly [begin: string, end: string], text: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`the page lacks the lines ${JSON.stringify(begin)} and ${JSON.stringify(end)}`);
  return `${page.slice(0, from)}${begin}\n${text}\n${page.slice(to)}`;
}

/** Write a Markdown table, padded so that it reads as text too. Pure. */
export function markdownTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((column, k) => Math.max(3, column.length, ...rows.map((row) => row[k]?.length ?? 0)));
  const line = (cells: readonly string[]): string => `| ${widths.map((width, k) => (cells[k] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(columns), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/** A Markdown table with the heading that it stands below. */
export interface PageTable {
  readonly heading: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Read the tables of a Markdown page, in order. A `|` between backticks is not a cell's end. Pure. */
export function tablesOf(page: string): readonly PageTable[] {
  const tables: { heading: string; columns: readonly string[]; rows: (readonly string[])[] }[] = [];
  let heading = "";
  let open: (typeof tables)[number] | undefined;
  for (const line of page.split("\n")) {
    heading = /^#+ (.+)$/.exec(line)?.[1] ?? heading;
    if (!line.startsWith("|")) open = undefined;
    else if (open === undefined) tables.push((open = { heading, columns: cellsOf(line), rows: [] }));
    else if (!/^\|[\s|:-]+\|$/.test(line)) open.rows.push(cellsOf(line));
  }
  return tables;
}

function cellsOf(line: string): readonly string[] {
  return Array.from(line.matchAll(/\|((?:`[^`]*`|[^|])*)(?=\|)/g), ([, cell = ""]) => cell.trim());
}

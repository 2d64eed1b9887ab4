/**
 * Lay rows out in columns, two spaces between them. Pure.
 *
 * Edges: a row of one cell is a sentence and lines up with nothing.
 * @param isNumber tells the columns that stand to the right; default: none
 */
export function columns(rows: readonly (readonly string[])[], isNumber: (column: number) => boolean = () => false): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    if (row.length > 1) for (const [column, { length }] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, length);
  }
  const padded = (cell: string, column: number): string =>
    isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows.map((row) => row.map(padded).join("  ").trimEnd());
}

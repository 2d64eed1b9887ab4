import { markdownTable, tablesOf, withWritten } from "@turnout/house/written-part";
import { TARGET_COLUMNS } from "./report.ts";

/** The name of the place in which all targets of the page stand together. */
const TARGETS = "targets";

/**
 * Put what a bench measured into its place in a page, and all targets of the page into theirs. Pure.
 *
 * Shape: a place is what stands between the lines `<!-- bench NAME -->` and `<!-- end of bench NAME -->`; the rest of the page, headings and notes too, is
 * people's. @throws {Error} when the page has no place for it.
 */
export function publish(page: string, name: string, section: string): string {
  const published = put(page, name, section);
  return put(published, TARGETS, targetsOf(published));
}

function put(page: string, name: string, text: string): string {
  return withWritten(page, [`<!-- bench ${name} -->`, `<!-- end of bench ${name} -->`], `\n${text}\n`);
}

/** All tables of targets in one, each line with a link to where it stands; what was missed comes first. */
function targetsOf(page: string): string {
  const rows = tablesOf(page)
    .filter(({ columns }) => columns.length === TARGET_COLUMNS.length && columns.every((column, k) => column === TARGET_COLUMNS[k]))
    .flatMap((table) => table.rows.map((row) => [...row, `[${table.heading}](#${anchorOf(table.heading)})`]));
  const missed = (row: readonly string[]): boolean => row[3] !== "met";
  return markdownTable([...TARGET_COLUMNS, "below"], [...rows.filter(missed), ...rows.filter((row) => !missed(row))]);
}

/** The address of a heading on its page, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

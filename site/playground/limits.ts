import { FAMILIES } from "@turnout/core";
import { splitDocuments } from "@turnout/server/manifests";
import type { Cluster } from "./cluster.ts";

/**
 * The page stands still while YAML is read, some two seconds for as much as this. JSON is read a hundred times faster. A worker would not
 * stop the page, but one that lies on a disk can start none without holding its script twice.
 */
export const YAML_MAX = 500_000;
/** The page stands still while a backend works on rows and their endpoints: iptables, the slowest, some three seconds on as many as these. */
export const ENTRIES_MAX = 10_000;
/** Of a long table or text a page shows the beginning: laying out what nobody reads takes seconds. */
export const LINES_SHOWN = 1_000;

const ELSEWHERE = "turnout print, render and why take any number";

/** Say that there is more YAML than a page should read; undefined: there is not. Pure. */
export function tooLong(manifests: string): string | undefined {
  if (manifests.length <= YAML_MAX) return undefined;
  const documents = splitDocuments(manifests).filter(({ text }) => !isJSON(text));
  const length = documents.reduce((sum, { text }) => sum + text.length, 0);
  if (length <= YAML_MAX) return undefined;
  return `These are ${counted(length)} characters of YAML, and a page reads no more than ${counted(YAML_MAX)}: JSON is read much faster (kubectl get -o json), and ${ELSEWHERE}.`;
}

/** JSON with a mistake is read as YAML. */
function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Say that rows, with their endpoints, are too many for a page; undefined: they are not. Pure. */
export function tooMany({ changes }: Pick<Cluster, "changes">): string | undefined {
  const rows = FAMILIES.flatMap((family) => changes[family].set);
  const endpoints = rows.reduce((count, row) => count + row.endpoints.length, 0);
  if (rows.length + endpoints <= ENTRIES_MAX) return undefined;
  return `These are ${counted(rows.length)} ${rows.length === 1 ? "row" : "rows"} with ${counted(endpoints)} endpoints, and a page is no place for more than ${counted(ENTRIES_MAX)} of both together: ${ELSEWHERE}.`;
}

/** What of a list is shown, and what is said of the rest. */
export interface Shown<T> {
  readonly shown: readonly T[];
  /** Undefined: nothing is left out. */
  readonly rest: string | undefined;
}

/** Cut a list to what a page shows of it. Pure. @param command what prints all of it */
export function cut<T>(list: readonly T[], command: string): Shown<T> {
  const more = list.length - LINES_SHOWN;
  if (more <= 0) return { shown: list, rest: undefined };
  return { shown: list.slice(0, LINES_SHOWN), rest: `and ${counted(more)} more lines, which ${command} prints` };
}

function counted(count: number): string {
  return count.toLocaleString("en");
}

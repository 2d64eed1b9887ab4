import { OBJECT_KINDS } from "@turnout/core";
import type { MetricSet } from "./metric-set.ts";

/**
 * Register the count of what is reported about API objects, and get the function that counts one report.
 *
 * Shape: it takes what the report is about, e.g. `Service shop/cart`; anything but an API object is a place in a file, and counts as `File`.
 */
export function registerIssues(set: MetricSet): (object: string) => void {
  const issues = set.counter("turnout_object_issues_total", "Ignored or malformed parts of API objects reported", ["kind"]);
  // From the start: an alert on growth does not see a series that is born with its first count.
  for (const kind of [...OBJECT_KINDS, "File"]) issues.inc({ kind }, 0);
  return (object) => {
    const word = object.split(" ", 1)[0];
    // As a label a place in a file would make a series of every line of every file.
    issues.inc({ kind: OBJECT_KINDS.find((known) => known === word) ?? "File" });
  };
}

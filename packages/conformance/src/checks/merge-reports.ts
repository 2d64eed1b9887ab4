import { mergeCells } from "./cells.ts";
import type { ConformanceReport } from "./finding.ts";

/** What parts of the kit that were played apart say together: the first names the backend and its abilities. Pure. */
export function mergeReports(
  first: ConformanceReport,
  others: readonly Pick<ConformanceReport, "findings" | "cells" | "notAsked">[],
): ConformanceReport {
  const all = [first, ...others];
  const findings = all.flatMap((one) => one.findings);
  return {
    ...first,
    findings,
    cells: mergeCells(
      all.flatMap(({ cells }) => cells),
      findings,
    ),
    notAsked: [...new Set(all.flatMap(({ notAsked }) => notAsked))],
  };
}

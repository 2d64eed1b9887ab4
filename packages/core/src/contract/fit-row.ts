import type { Capabilities } from "./capabilities.ts";
import type { ServicePort } from "../model/rows.ts";
import type { Issue } from "../model/api-objects.ts";

/**
 * Reduce a row to what a backend can do, failing closed.
 *
 * Edges: a protocol it doesn't know: the row is left out; no source ranges: such destinations are left out; no
 * affinity: the row goes without. Each is an issue.
 */
export function fitRow(
  row: ServicePort,
  capabilities: Capabilities,
): { readonly row: ServicePort | undefined; readonly issues: readonly Issue[] } {
  const object = `Service port ${row.key}`;
  const protocol = capabilities[row.name.protocol];
  if (protocol !== true)
    return { row: undefined, issues: [{ object, what: `left out, no ${row.name.protocol}: ${protocol}`, hint: "use another backend" }] };
  const issues: Issue[] = [];
  let fitted = row;
  if (row.affinitySeconds !== undefined && capabilities.sessionAffinity !== true) {
    issues.push({ object, what: `programmed without session affinity: ${capabilities.sessionAffinity}`, hint: "use another backend" });
    fitted = { ...fitted, affinitySeconds: undefined };
  }
  const ranged = row.destinations.filter(({ sourceRanges }) => sourceRanges !== undefined);
  if (ranged.length > 0 && capabilities.sourceRanges !== true) {
    const addresses = ranged.map(({ address }) => address).join(", ");
    issues.push({ object, what: `left out, no source ranges: ${addresses}: ${capabilities.sourceRanges}`, hint: "use another backend" });
    fitted = { ...fitted, destinations: row.destinations.filter((destination) => !ranged.includes(destination)) };
  }
  return { row: fitted, issues };
}

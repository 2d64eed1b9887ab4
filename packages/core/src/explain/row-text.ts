import { hostPort } from "../model/addresses.ts";
import type { Destination, Endpoint, Rule, ServicePort } from "../model/rows.ts";

const ENDPOINTS_SHOWN = 6;
const KIND_WORDS: Readonly<Record<Destination["kind"], string>> = {
  clusterIP: "cluster",
  externalIP: "external",
  loadBalancerIP: "lb",
  nodePort: "node port",
};

/** What the columns of {@link rowLines} are about. */
export const ROW_COLUMNS = ["SERVICE PORT", "", "DESTINATION", "RULES", "ENDPOINTS"] as const;

/** The cells of one line: row, notes, destination, rules, endpoints. */
export type RowLine = readonly [row: string, notes: string, destination: string, rules: string, endpoints: string];

/**
 * Write a row for people, one line per destination. Pure.
 *
 * Shape: what concerns the whole row stands in its first line alone; a row without destinations has one line.
 * Edges: `*` marks an endpoint on this node, `!` one that is terminating, `?` one that is not ready; long lists are cut.
 */
export function rowLines(row: ServicePort): readonly RowLine[] {
  const endpoints = endpointsText(row);
  const notes = notesText(row);
  if (row.destinations.length === 0) return [[row.key, notes, "none", "", endpoints]];
  return row.destinations.map((destination, index) => {
    const address = destination.kind === "nodePort" ? `:${destination.port}` : hostPort(destination.address, destination.port);
    const where = `${KIND_WORDS[destination.kind]} ${address}`;
    return [index === 0 ? row.key : "", index === 0 ? notes : "", where, rulesText(destination), index === 0 ? endpoints : ""];
  });
}

/** What narrows the choice of endpoints: affinity, and the level of topology hints in use. */
function notesText({ affinitySeconds, topology }: ServicePort): string {
  return [...(affinitySeconds === undefined ? [] : [`affinity ${affinitySeconds}s`]), ...(topology === "" ? [] : [topology])].join(", ");
}

/** `from → to`, the source of the last rule left out when it is anyone. */
function rulesText({ rules, sourceRanges }: Destination): string {
  const text = (rule: Rule): string =>
    `${rule.from === "anyone" ? "" : `${rule.from} → `}${rule.to}${rule.masquerade ? " (masquerade)" : ""}`;
  const ranges = sourceRanges === undefined ? "" : ` [${sourceRanges.join(" ")}]`;
  return rules.map(text).join(", ") + ranges;
}

function endpointsText(row: ServicePort): string {
  if (row.endpoints.length === 0) return "none";
  const shown = row.endpoints.slice(0, ENDPOINTS_SHOWN).map((endpoint) => `${hostPort(endpoint.ip, endpoint.port)}${marks(endpoint)}`);
  const more = row.endpoints.length - shown.length;
  return shown.join(" ") + (more > 0 ? ` and ${more} more` : "");
}

function marks(endpoint: Endpoint): string {
  return (endpoint.isLocal ? "*" : "") + (endpoint.terminating ? "!" : endpoint.ready ? "" : "?");
}

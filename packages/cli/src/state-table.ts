import { hostPort, type Destination, type Endpoint, type IPFamily, type NodeContext, type Rule, type ServicePort } from "@turnout/core";
import CliTable3 from "cli-table3";

/** One family's node state as it is printed. */
export interface PrintedState {
  readonly family: IPFamily;
  readonly revision: number;
  readonly node: NodeContext;
  readonly rows: readonly ServicePort[];
}

const ENDPOINTS_SHOWN = 6;
const KIND_WORDS: Readonly<Record<Destination["kind"], string>> = {
  clusterIP: "cluster",
  externalIP: "external",
  loadBalancerIP: "lb",
  nodePort: "node port",
};
const NO_LINES: Readonly<Record<string, string>> = Object.fromEntries(
  [
    "top",
    "top-mid",
    "top-left",
    "top-right",
    "bottom",
    "bottom-mid",
    "bottom-left",
    "bottom-right",
    "left",
    "left-mid",
    "mid",
    "mid-mid",
    "right",
    "right-mid",
  ].map((name) => [name, ""]),
);

/**
 * Write one family's node state as a table without lines, one line per destination.
 *
 * Edges: `*` marks an endpoint on this node, `!` one that is terminating, `?` one that is not ready; long lists are cut.
 */
export function stateTable(state: PrintedState): string {
  const { node, family, rows } = state;
  const facts = [
    `node ${node.name}`,
    family,
    node.addresses.join(" ") || "no address known",
    ...(node.zone === "" ? [] : [`zone ${node.zone}`]),
  ];
  const head = `${facts.join("  ")}  ${rows.length} service port${rows.length === 1 ? "" : "s"}\n`;
  if (rows.length === 0) return head;
  const table = new CliTable3({
    chars: { ...NO_LINES, middle: "  " },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
  });
  table.push(["SERVICE PORT", "", "DESTINATION", "RULES", "ENDPOINTS"]);
  for (const row of rows) table.push(...linesOf(row));
  const text = table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd());
  return `${head}${text.join("\n")}\n`;
}

function linesOf(row: ServicePort): string[][] {
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

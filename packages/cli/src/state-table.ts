import { ROW_COLUMNS, rowLines, type IPFamily, type NodeContext, type ServicePort } from "@turnout/core";
import CliTable3 from "cli-table3";

/** One family's node state as it is printed. */
export interface PrintedState {
  readonly family: IPFamily;
  readonly revision: number;
  readonly node: NodeContext;
  readonly rows: readonly ServicePort[];
}

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
 * Shape: the cells are those of `rowLines`.
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
  table.push([...ROW_COLUMNS]);
  for (const row of rows) table.push(...rowLines(row).map((line) => [...line]));
  const text = table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd());
  return `${head}${text.join("\n")}\n`;
}

import { ROW_COLUMNS, rowLines, type IPFamily, type NodeContext, type ServicePort } from "@turnout/core";
import { columns } from "./columns.ts";

/** One family's node state as it is printed. */
export interface PrintedState {
  readonly family: IPFamily;
  readonly revision: number;
  readonly node: NodeContext;
  readonly rows: readonly ServicePort[];
}

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
  return `${head}${columns([ROW_COLUMNS, ...rows.flatMap((row) => rowLines(row))]).join("\n")}\n`;
}

/** Where packets come by; the name of a built-in chain. */
export type Hook = "PREROUTING" | "INPUT" | "FORWARD" | "OUTPUT" | "POSTROUTING";

/** The tables there are, in the order in which `iptables-nft-save` prints them. */
export const TABLES = ["mangle", "security", "raw", "filter", "nat"] as const;

/** Name of a table. */
export type TableName = (typeof TABLES)[number];

/** The built-in chains of each table, in the order in which they are printed. */
export const BUILTINS: Readonly<Record<TableName, readonly Hook[]>> = {
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  security: ["INPUT", "FORWARD", "OUTPUT"],
  raw: ["PREROUTING", "OUTPUT"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
};

import { listedTable } from "./listed-table.ts";
import type { FuzzTarget } from "@turnout/house/fuzz";
import { objectsInParts } from "../observe.ts";

/** What reads objects out of a table. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "nft-table", form: "json", run: (input) => objectsInParts(listedTable(input.toString("utf8"))) },
];

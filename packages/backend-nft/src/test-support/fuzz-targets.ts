import type { FuzzTarget } from "@turnout/house/fuzz";
import { parseTable } from "../observe.ts";

/** What reads nft's listings. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "nft-table", form: "json", run: (input) => parseTable(input.toString("utf8")) },
];

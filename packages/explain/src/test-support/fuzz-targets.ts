import type { FuzzTarget } from "@turnout/house/fuzz";
import { readRoute } from "../readings/route.ts";

/** What reads the output of tools. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "ip-route", form: "json", run: (input) => readRoute(0, input.toString("utf8"), "") },
];

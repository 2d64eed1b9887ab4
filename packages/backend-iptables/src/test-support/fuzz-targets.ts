import type { FuzzTarget } from "@turnout/house/fuzz";
import { answersOnLoopback, countRules, parseSaved } from "../observe.ts";

/** Of each table the same text: the tables' names are in it. */
function readSaved(input: Buffer): void {
  const text = input.toString("utf8");
  for (const family of ["IPv4", "IPv6"] as const) {
    const objects = parseSaved({ filter: text, nat: text, mangle: text }, family, family === "IPv4");
    answersOnLoopback(objects);
    countRules(objects.values());
  }
}

/** What reads the kernel's rules as iptables-save prints them. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [{ name: "iptables-objects", form: "text", run: readSaved }];

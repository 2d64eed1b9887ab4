import { join } from "node:path";
import type { IPFamily } from "@turnout/core";
import type { Place } from "@turnout/lab";

const SAVE: Readonly<Record<IPFamily, string>> = { IPv4: "iptables-save", IPv6: "ip6tables-save" };

/** What the tool of a directory saves in a place: all tables, without dates, counters zero. */
export async function saveText(place: Place, tools: string, family: IPFamily): Promise<string> {
  const { stdout } = await place.run(join(tools, SAVE[family]), []);
  const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return `${lines.map((line) => line.replace(/\[\d+:\d+\]$/, "[0:0]")).join("\n")}\n`;
}

/** The chains and rules of a saved text, each with its table: what is left when order does not count. Pure. */
export function savedLines(text: string): readonly string[] {
  let table = "";
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    else if (line.startsWith(":") || line.startsWith("-A ")) lines.push(`${table} ${line}`);
  }
  return lines.toSorted();
}

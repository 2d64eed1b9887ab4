import { afterEach, expect, test } from "vitest";
import { readColumns, registerConntrack } from "./conntrack-metrics.ts";
import { MetricSet } from "./metric-set.ts";

let set: MetricSet | undefined;
afterEach(() => set?.close());

/** Two CPUs; with Linux 6.18's header and its double blanks. */
const STAT = [
  "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart",
  "0000002a  00000000 00000000 00000000 00000010 00000000 00000000 00000000 00000000 00000003 00000000 00000005 00000000  00000000 00000000 00000000 00000000",
  "0000002a  00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000000  00000000 00000000 00000000 00000000",
  "",
].join("\n");

async function reported(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  set = new MetricSet();
  registerConntrack(set, (path) => files[path]);
  return (await set.reply()).body.split("\n").filter((line) => line.startsWith("turnout_conntrack"));
}

test("entries are told once, what each CPU counts is added up, numbers are hexadecimal", async () => {
  const files = { "/proc/net/stat/nf_conntrack": STAT, "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n" };
  expect(await reported(files)).toEqual([
    "turnout_conntrack_entries 42",
    "turnout_conntrack_max_entries 262144",
    "turnout_conntrack_invalid_total 17",
    "turnout_conntrack_insert_failed_total 4",
    "turnout_conntrack_dropped_total 0",
    "turnout_conntrack_early_dropped_total 5",
  ]);
});

test("without conntrack nothing is told, and an older kernel's columns are found by their names", async () => {
  expect(await reported({})).toEqual([]);
  expect(readColumns("entries searched invalid\n00000001 00000002 0000000f\n").get("invalid")).toEqual([15]);
  expect(readColumns("entries\n")).toEqual(new Map());
});

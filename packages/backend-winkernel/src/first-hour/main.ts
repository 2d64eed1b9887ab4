import { appendFileSync } from "node:fs";
import { loadHnsCalls } from "../native/libraries.ts";
import { WindowsHns } from "../native/windows-hns.ts";
import { firstHour } from "./first-hour.ts";
import { recordingHns } from "./recording.ts";

// `node.exe lib/first-hour.mjs NETWORK FILE [COUNT]`: the first hour on a node; prints what it finds, and records every call of HNS in a file.
const [networkName = "", file = "", count = "1000"] = process.argv.slice(2);
const nowMs = (): number => Math.round(performance.now());
const windows = new WindowsHns(() => loadHnsCalls({ platform: process.platform, systemRoot: process.env["SystemRoot"] ?? "" }));
const hns = recordingHns(windows, nowMs, (call) => appendFileSync(file, `${JSON.stringify(call)}\n`));
const { signal } = new AbortController();
if (networkName === "" || file === "") {
  process.stderr.write("usage: first-hour NETWORK FILE [COUNT]\n");
  process.exitCode = 2;
} else {
  const notify = ({ what, found }: { readonly what: string; readonly found: string }): void =>
    void process.stdout.write(`${what}: ${found}\n`);
  await firstHour(hns, { networkName, count: Number(count), signal, nowMs, notify });
}

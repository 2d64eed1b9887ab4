// Gives up its rights and prints what is left where: run by process-rights.test.ts, as root or as somebody else with ambient capabilities.
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { readdirSync, readFileSync } from "node:fs";
import { createProcessRights } from "../rights/process-rights.ts";

const permitted = (path: string): string => /^CapPrm:\s*0*([0-9a-f]+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "";
const statusOf = (name: string): readonly string[] =>
  readdirSync("/proc/self/task")
    .map((thread) => `/proc/self/task/${thread}/status`)
    .filter((path) => readFileSync(path, "utf8").startsWith(`Name:\t${name}\n`));

// All threads of the pool are there, with all rights, before any are given up.
await Promise.all(Array.from({ length: 8 }, () => readFile("/proc/self/status")));
const rights = createProcessRights();
const poolBefore = statusOf("libuv-worker").length;
const inLook = rights.without(
  ["CAP_NET_RAW"],
  () => /^CapEff:\s*0*([0-9a-f]+)$/m.exec(readFileSync("/proc/thread-self/status", "utf8"))?.[1],
);
await rights.keep(["CAP_NET_ADMIN", "CAP_NET_RAW"], ["CAP_NET_ADMIN"]);
const child = execFileSync("grep", ["-E", "^(CapPrm|NoNewPrivs)", "/proc/self/status"], { encoding: "utf8" });
const first = {
  main: permitted("/proc/thread-self/status"),
  child: child.trim().split(/\s+/),
  pool: statusOf("libuv-worker").map(permitted),
};
await rights.keep(["CAP_NET_ADMIN"], ["CAP_NET_ADMIN"]);
process.stdout.write(JSON.stringify({ poolBefore, inLook, first, last: rights.held() }));

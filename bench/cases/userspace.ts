import { spawnSync } from "node:child_process";
import type { BenchCase, CaseResult } from "../case.ts";
import { memoryText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { Carrier, UserspaceMetrics, UserspaceParameters } from "../roles/userspace.ts";
import { median, percentile } from "../statistics.ts";

const ROUNDS = 3;
const FOR_MS = 2_000;
const PINGS = 3_000;
/** What of Debian is measured beside us, and what installs it. */
const OTHERS: readonly { readonly carrier: Carrier; readonly packages: string }[] = [
  { carrier: "socat", packages: "socat" },
  { carrier: "nginx", packages: "nginx libnginx-mod-stream" },
];

/** The userspace backend beside other proxies in a process: throughput, visits a second, round trips. */
export const userspaceCase: BenchCase = {
  name: "userspace",
  about: "the userspace backend beside socat and nginx's stream proxy: throughput, connections a second, round trips",
  needs: ["root", "ip", "built"],
  async run({ runs = ROUNDS, progress }): Promise<CaseResult> {
    const carriers: readonly Carrier[] = ["direct", "turnout", ...availableOthers(progress)];
    const parameters: UserspaceParameters = { carriers, forMs: FOR_MS, pings: PINGS };
    const rounds: (readonly UserspaceMetrics[])[] = [];
    for (let round = 0; round < runs; round++) {
      progress(`round ${round + 1} of ${runs}: ${carriers.join(", ")}`);
      rounds.push(await runRole<readonly UserspaceMetrics[]>("userspace", parameters));
    }
    return {
      title: "The userspace backend",
      about:
        "Client, proxy and server are three processes on loopback, in a network namespace of their own. Client and server are Node programs; *nobody (direct)*, without " +
        "a proxy, shows how much of the machine they use. Throughput is in MB/s over one connection and over 16. A *visit* connects, sends 64 bytes, waits until they come back, " +
        "and closes; eight run at a time. Round trips are of 64 bytes over one open connection (p50 / p99). `socat` forks a process for each connection; nginx " +
        `has one worker. Medians of ${runs} rounds in which the proxies take turns; the round trips are of all rounds together.`,
      columns: ["carried by", "1 connection", "16 connections", "visits a second", "round trip", "RSS afterwards"],
      rows: carriers.map((carrier) => rowOf(carrier, rounds)),
      targets: [],
      data: rounds,
    };
  },
};

/** Install what is missing where that can be done, and say what is left out. */
function availableOthers(progress: (text: string) => void): readonly Carrier[] {
  // RUNLEVEL: a package's service is not to be started with it.
  const env = { ...process.env, RUNLEVEL: "1" };
  spawnSync("sh", ["scripts/host-setup.sh", ...OTHERS.map(({ carrier, packages }) => `${carrier}:${packages}`)], { stdio: "inherit", env });
  return OTHERS.flatMap(({ carrier, packages }) => {
    if (spawnSync(carrier, [carrier === "socat" ? "-V" : "-v"]).error === undefined) return [carrier];
    progress(`without ${carrier}: apt-get install ${packages}`);
    return [];
  });
}

function rowOf(carrier: Carrier, rounds: readonly (readonly UserspaceMetrics[])[]): readonly string[] {
  const all = rounds.flatMap((round) => round.filter((one) => one.carrier === carrier));
  const middle = (of: (one: UserspaceMetrics) => number): number => median(all.map(of));
  const trips = all.flatMap((one) => one.pings);
  return [
    carrier === "turnout" ? "Turnout, userspace" : carrier === "direct" ? "nobody (direct)" : carrier,
    `${Math.round(middle((one) => one.oneMBps))} MB/s`,
    `${Math.round(middle((one) => one.manyMBps))} MB/s`,
    String(Math.round(middle((one) => one.visitsPerSecond))),
    `${microsText(median(trips))} / ${microsText(percentile(trips, 0.99))}`,
    carrier === "direct" ? "" : memoryText(middle((one) => one.rss)),
  ];
}

function microsText(ms: number): string {
  return `${Math.round(ms * 1000)} µs`;
}

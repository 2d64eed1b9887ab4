import { once } from "node:events";
import { parseArgs } from "node:util";
import { IPVS_MODULES, nodeCommand, runInGuest } from "@turnout/house/guest";
import { TURNOUT } from "../role-process.ts";
import { GUEST_PROXIES, HOST_PROXIES, startKind } from "./proxies.ts";
import type { ProxyKind } from "./proxies.ts";
import { createMovingStage } from "./stage.ts";
import { startTraffic } from "./traffic.ts";
import type { TrafficReport } from "./traffic.ts";

/**
 * Move between proxies with traffic on: `KUBE_PROXY=path npm run e2e:moving`. Each move is one cluster of its own: the proxy before is stopped by
 * SIGTERM, the next one is started, and after a move to kube-proxy `turnout cleanup` is run. Prints a table; exits with 1 when something was lost.
 * Needs root, and the command built. Without KUBE_PROXY only Turnout's own backends are played. `--only TEXT`: moves whose name has it, may be said again;
 * `--connections N`; `--guest`: those with ipvs, in user-mode Linux.
 */
async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: [""], multiple: true },
      connections: { type: "string", default: "500" },
      guest: { type: "boolean", default: false },
      "in-guest": { type: "boolean", default: false },
    },
  });
  if (values.guest) return await playInGuest(values.only, values.connections);
  const proxies = values["in-guest"] ? GUEST_PROXIES : HOST_PROXIES;
  const moves = movesOf(proxies, process.env["KUBE_PROXY"] !== undefined).filter(({ name }) =>
    values.only.every((text) => name.includes(text)),
  );
  process.stdout.write("| from → to | long connections kept | new ones failed | UDP datagrams lost |\n|---|---|---|---|\n");
  let isWell = true;
  for (const move of moves) isWell = (await playAndPrint(move, Number(values.connections), !values["in-guest"])) && isWell;
  return isWell;
}

interface Move {
  readonly name: string;
  readonly from: ProxyKind;
  readonly to: ProxyKind;
}

/** All pairs; nobody moves away from a mode that chooses by itself. */
function movesOf(proxies: Readonly<Record<string, ProxyKind>>, hasKubeProxy: boolean): readonly Move[] {
  const all = Object.entries(proxies).filter(([, { program }]) => hasKubeProxy || program === "turnout");
  return all.flatMap(([name, from]) =>
    all
      .filter(([other]) => other !== name)
      .filter(() => from.program === "kube-proxy" || from.flags.length > 0)
      .map(([other, to]) => ({ name: `${name} → ${other}`, from, to })),
  );
}

async function playAndPrint(move: Move, connections: number, hasCgroups: boolean): Promise<boolean> {
  try {
    const report = await play(move, connections, hasCgroups);
    const { connectionsLost, failed, datagramsLost } = report;
    process.stdout.write(`| ${move.name} | ${cells(report).join(" | ")} |\n`);
    return connectionsLost === 0 && datagramsLost === 0 && Object.keys(failed).length === 0;
  } catch (error) {
    process.stdout.write(`| ${move.name} | ${error instanceof Error ? error.message : String(error)} | | |\n`);
    return false;
  }
}

function cells({ connections, connectionsLost, attempts, failed, datagrams, datagramsLost, udpFlows }: TrafficReport): readonly string[] {
  const failures = Object.entries(failed).map(([what, count]) => `${count} ${what}`);
  return [
    `${connections - connectionsLost} of ${connections}`,
    `${failures.length === 0 ? "0" : failures.join(", ")} of ${attempts}`,
    `${datagramsLost} of ${datagrams} (${udpFlows} flows)`,
  ];
}

async function play({ from, to }: Move, connections: number, hasCgroups: boolean): Promise<TrafficReport> {
  const stage = await createMovingStage(hasCgroups);
  try {
    const place = { ...stage, kubeProxy: process.env["KUBE_PROXY"] };
    const former = await startKind(from, place);
    const traffic = await startTraffic(stage.cluster, connections);
    await traffic.more(20);
    const end = once(former, "exit");
    former.kill("SIGTERM");
    await end;
    await traffic.more(10);
    const next = await startKind(to, place);
    await traffic.more(20);
    if (to.program === "kube-proxy") await stage.node.run(TURNOUT, ["cleanup"]);
    await traffic.more(20);
    await stage.follow();
    const report = await traffic.stop();
    next.kill("SIGKILL");
    return report;
  } finally {
    await stage.destroy();
  }
}

async function playInGuest(only: readonly string[], connections: string): Promise<boolean> {
  const { code, stdout, stderr } = await runInGuest({
    command: nodeCommand(
      new URL("./main.ts", import.meta.url),
      ["--in-guest", ...only.flatMap((text) => ["--only", text]), "--connections", connections],
      "built",
    ),
    modules: IPVS_MODULES,
    memoryMiB: 2_048,
    timeoutMs: 3_600_000,
    env: { KUBE_PROXY: process.env["KUBE_PROXY"] ?? "", TURNOUT_MOVING_LOG: process.env["TURNOUT_MOVING_LOG"] ?? "" },
  });
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  return code === 0;
}

process.exitCode = (await main()) ? 0 : 1;

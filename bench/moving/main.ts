import { once } from "node:events";
import { dirname } from "node:path";
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

/** Of all moves in a guest, which is slow. */
const GUEST_TIMEOUT_MS = 3 * 3_600_000;

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
    const { connectionsLost, failed, datagramsLost, losses } = report;
    process.stdout.write(`| ${move.name} | ${cells(report).join(" | ")} |\n`);
    for (const [line, count] of counted(losses)) process.stderr.write(`${count} × ${line}\n`);
    return connectionsLost === 0 && datagramsLost === 0 && Object.keys(failed).length === 0;
  } catch (error) {
    process.stdout.write(`| ${move.name} | ${error instanceof Error ? error.message : String(error)} | | |\n`);
    return false;
  }
}

function counted(lines: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
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
  const kubeProxy = process.env["KUBE_PROXY"];
  const { code } = await runInGuest({
    command: nodeCommand(
      new URL("./main.ts", import.meta.url),
      ["--in-guest", ...only.flatMap((text) => ["--only", text]), "--connections", connections],
      "built",
    ),
    modules: IPVS_MODULES,
    // The guest has a /tmp of its own, and kube-proxy may be in this one.
    ...(kubeProxy === undefined ? {} : { folder: dirname(kubeProxy) }),
    memoryMiB: 2_048,
    timeoutMs: GUEST_TIMEOUT_MS,
    env: given(["KUBE_PROXY", "TURNOUT_MOVING_LOG"]),
    onStdout: (text) => process.stdout.write(text),
    onStderr: (text) => process.stderr.write(text),
  });
  return code === 0;
}

function given(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}

process.exitCode = (await main()) ? 0 : 1;

import { once } from "node:events";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { runCommand, wholeNumber } from "@turnout/house/command-line";
import { runAgainInVm } from "@turnout/house/vm";
import { TURNOUT } from "../role-process.ts";
import { VM_PROXIES, HOST_PROXIES, startKind } from "../proxies.ts";
import type { ProxyKind, RunningProxy } from "../proxies.ts";
import { failureText, isWell, linesOf, measure } from "./measured.ts";
import type { Measured } from "./measured.ts";
import { createMovingStage } from "./stage.ts";
import type { MovingStage } from "./stage.ts";
import { startTraffic } from "./traffic.ts";
import type { Traffic, TrafficOptions } from "./traffic.ts";

const USAGE = "[KUBE_PROXY=PATH] npm run e2e:moving -- [--only TEXT]... [--connections N] [--pause-ms N] [--vm]";

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", default: [""], multiple: true },
      connections: { type: "string", default: "500" },
      vm: { type: "boolean", default: false },
      "pause-ms": { type: "string" },
      "in-vm": { type: "boolean", default: false },
    },
  });
  const isForVm = values.vm || values["in-vm"];
  const proxies = isForVm ? VM_PROXIES : HOST_PROXIES;
  const moves = movesOf(proxies, process.env["KUBE_PROXY"] !== undefined).filter(({ name }) =>
    values.only.every((text) => name.includes(text)),
  );
  if (moves.length === 0) throw new RangeError(`--only ${values.only.join(" --only ")}: no move has that in its name`);
  const amount = {
    connections: wholeNumber("--connections", values.connections, 1),
    pauseMs: wholeNumber("--pause-ms", values["pause-ms"] ?? (isForVm ? "100" : "20"), 0),
  };
  return { values, moves, amount };
}

/**
 * Move between proxies with traffic on: `KUBE_PROXY=path npm run e2e:moving`. Each move is one cluster of its own: the proxy before is stopped by
 * SIGTERM, the next one is started, and after a move to kube-proxy `turnout cleanup` is run. Prints a table; exits with 1 when something was lost.
 * Needs root, and the command built. Without KUBE_PROXY only Turnout's own backends are played. `--only TEXT`: moves whose name has it, may be said again;
 * `--connections N`; `--pause-ms N`: between new ones; `--vm`: those with ipvs, in user-mode Linux, with longer pauses, for it has one CPU.
 */
async function main({ values, moves, amount }: ReturnType<typeof asked>): Promise<boolean> {
  if (values.vm) {
    const kubeProxy = process.env["KUBE_PROXY"];
    return await runAgainInVm({ variables: ["KUBE_PROXY", "TURNOUT_MOVING_LOG"], folder: kubeProxy && dirname(kubeProxy) });
  }
  process.stdout.write("| from → to | long connections kept | new ones failed | UDP datagrams lost |\n|---|---|---|---|\n");
  let areWell = true;
  for (const move of moves) areWell = (await runAndPrint(move, amount, !values["in-vm"])) && areWell;
  return areWell;
}

/** Time for `turnout cleanup`, in a guest too. */
const CLEANUP_MS = 600_000;

interface Move {
  readonly name: string;
  readonly from: ProxyKind;
  /** One of Turnout's that runs in between, until it has removed what was there before it. */
  readonly by?: ProxyKind;
  readonly to: ProxyKind;
}

/** Where the direct step loses something: kube-proxy removes chains of its other modes before it has rules of its own, or leaves what cuts open connections. */
const DETOURS: readonly (readonly [from: string, by: string, to: string])[] = [
  ["kube-proxy iptables (nft)", "turnout nft", "kube-proxy nftables"],
  ["turnout iptables (nft)", "turnout nft", "kube-proxy nftables"],
  ["turnout ipvs", "turnout iptables (legacy)", "kube-proxy iptables (legacy)"],
];

/** All pairs, and the detours; nobody moves away from a mode that chooses by itself. */
function movesOf(proxies: Readonly<Record<string, ProxyKind>>, hasKubeProxy: boolean): readonly Move[] {
  const all = Object.entries(proxies).filter(([, { program }]) => hasKubeProxy || program === "turnout");
  const direct = all.flatMap(([name, from]) =>
    all
      .filter(([other]) => other !== name)
      .filter(() => from.program === "kube-proxy" || from.flags.length > 0)
      .map(([other, to]) => ({ name: `${name} → ${other}`, from, to })),
  );
  const known = new Map(all);
  const detours = DETOURS.flatMap((names): readonly Move[] => {
    const [from, by, to] = names.map((name) => known.get(name));
    return from === undefined || by === undefined || to === undefined ? [] : [{ name: names.join(" → "), from, by, to }];
  });
  return [...direct, ...detours];
}

async function runAndPrint(move: Move, amount: TrafficOptions, hasCgroups: boolean): Promise<boolean> {
  try {
    const measured = await execute(move, amount, hasCgroups);
    const { row, notes } = linesOf(move.name, measured);
    process.stdout.write(`${row}\n`);
    for (const note of notes) process.stderr.write(`${note}\n`);
    return isWell(measured);
  } catch (error) {
    process.stdout.write(`| ${move.name} | ${failureText(error)} | | |\n`);
    return false;
  }
}

async function execute(move: Move, amount: TrafficOptions, hasCgroups: boolean): Promise<Measured> {
  const stage = await createMovingStage(hasCgroups);
  const started: RunningProxy[] = [];
  const start = async (kind: ProxyKind): Promise<RunningProxy> => {
    const proxy = await startKind(kind, { ...stage, kubeProxy: process.env["KUBE_PROXY"] });
    started.push(proxy);
    return proxy;
  };
  try {
    const former = await start(move.from);
    const traffic = await startTraffic(stage.cluster, amount);
    return await measure(traffic, () => runWithTraffic(move, { stage, former, traffic, start }));
  } finally {
    for (const { child } of started) child.kill("SIGKILL");
    await stage.destroy();
  }
}

/** What a move is played with. */
interface Run {
  readonly stage: MovingStage;
  readonly former: RunningProxy;
  readonly traffic: Traffic;
  readonly start: (kind: ProxyKind) => Promise<RunningProxy>;
}

async function runWithTraffic({ by, to }: Move, { stage, former, traffic, start }: Run): Promise<void> {
  await traffic.more(20);
  await stop(former);
  await traffic.more(10);
  if (by !== undefined) {
    const between = await start(by);
    await between.formerIsGone();
    await traffic.more(10);
    await stop(between);
    await traffic.more(10);
  }
  await start(to);
  await traffic.more(20);
  if (to.program === "kube-proxy") await stage.node.run(TURNOUT, ["cleanup"], { timeoutMs: CLEANUP_MS });
  await traffic.more(20);
  await stage.follow();
}

async function stop({ child }: RunningProxy): Promise<void> {
  const end = once(child, "exit");
  child.kill("SIGTERM");
  await end;
}

await runCommand({ name: "e2e:moving", usage: USAGE, read: asked, execute: main });

import { parseArgs } from "node:util";
import { ebpfModule } from "@turnout/backend-ebpf";
import { iptablesModule } from "@turnout/backend-iptables";
import { nftModule } from "@turnout/backend-nft";
import type { BackendModule } from "@turnout/core";
import { oneOf, runCommand, wholeNumber } from "@turnout/house/command-line";
import { kubeProxyVersion } from "../kube-proxy/process.ts";
import type { HostProxy } from "../proxies.ts";
import type { Compared } from "./compare.ts";
import { askedAgain, askedOf, Differ, IMPATIENCE } from "./differ.ts";
import type { Difference } from "./differ.ts";
import { differenceText, explanationText, worldText } from "./report.ts";
import { minimise } from "./smaller.ts";
import { createDifferentialStage } from "./stage.ts";
import type { Stage } from "./stage.ts";
import { SEEDS_OF_A_SETUP, setupOf, worldOf } from "./world.ts";
import type { World } from "./world.ts";

const USAGE = "KUBE_PROXY=PATH npm run e2e:differential -- [--pair nft|iptables|iptables-legacy|ebpf] [--worlds N] [--seed N]";

/** A backend, and the mode of kube-proxy whose behaviour it is compared with. */
interface Pair {
  readonly turnout: HostProxy;
  readonly kubeProxy: HostProxy;
  readonly backend: BackendModule;
  readonly mode: BackendModule;
}

const PAIRS: Readonly<Record<string, Pair>> = {
  nft: { turnout: "turnout nft", kubeProxy: "kube-proxy nftables", backend: nftModule, mode: nftModule },
  iptables: { turnout: "turnout iptables (nft)", kubeProxy: "kube-proxy iptables (nft)", backend: iptablesModule, mode: iptablesModule },
  "iptables-legacy": {
    turnout: "turnout iptables (legacy)",
    kubeProxy: "kube-proxy iptables (legacy)",
    backend: iptablesModule,
    mode: iptablesModule,
  },
  ebpf: { turnout: "turnout ebpf", kubeProxy: "kube-proxy nftables", backend: ebpfModule, mode: nftModule },
};

/** Worlds that are tried to make one that differs smaller. */
const MINIMISING = 80;

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function read(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      pair: { type: "string", default: "nft" },
      worlds: { type: "string", default: "200" },
      seed: { type: "string", default: "1" },
    },
  });
  const asked = {
    pair: oneOf("--pair", values.pair, Object.keys(PAIRS)),
    worlds: wholeNumber("--worlds", values.worlds, 1),
    seed: wholeNumber("--seed", values.seed, 0),
  };
  const program = process.env["KUBE_PROXY"];
  if (program === undefined) throw new RangeError("KUBE_PROXY is not set: name the path of a real kube-proxy");
  return { ...asked, program };
}

/** What a run has found so far. */
interface Tally {
  connections: number;
  differing: number;
  readonly explained: Map<string, number>;
}

/**
 * Run a real kube-proxy next to Turnout in random worlds and compare: `KUBE_PROXY=path npm run e2e:differential`. Needs root, and the command built.
 * A world that differs in a way that docs/rules.md doesn't explain is run again, made smaller and printed; then the exit code is 1.
 */
async function main({ program, pair: name, worlds, seed }: ReturnType<typeof read>): Promise<boolean> {
  const pair = PAIRS[name] as Pair;
  process.stdout.write(`${pair.turnout} next to ${pair.kubeProxy} ${kubeProxyVersion(program)}: worlds ${seed} to ${seed + worlds - 1}\n`);
  const tally: Tally = { connections: 0, differing: 0, explained: new Map() };
  for (let next = seed; next < seed + worlds;) {
    const end = Math.min(seed + worlds, (Math.floor(next / SEEDS_OF_A_SETUP) + 1) * SEEDS_OF_A_SETUP);
    const setup = setupOf(next);
    const stage = await createDifferentialStage({ ...pair, program, setup });
    try {
      process.stdout.write(`setup of worlds ${next} to ${end - 1}: ${JSON.stringify(setup.settings)}\n`);
      for (; next < end; next += 1) await compareWorld(next, stage, { ...pair, settings: setup.settings }, tally);
    } finally {
      await stage.destroy();
    }
  }
  const explained = [...tally.explained].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([why, count]) => `  ${count} × ${why}`);
  process.stdout.write(`${tally.connections} connections; permitted differences:\n${explained.join("\n")}\n`);
  process.stdout.write(`${worlds} worlds, ${tally.differing} with a difference that is not permitted\n`);
  return tally.differing === 0;
}

async function compareWorld(seed: number, stage: Stage, compared: Compared, tally: Tally): Promise<void> {
  const startMs = performance.now();
  const world = worldOf(seed);
  const differ = new Differ(stage, compared);
  const questions = askedOf(compared, world, seed);
  const first = await differ.compare(world, questions);
  for (const { explanation } of first)
    if (explanation !== undefined)
      tally.explained.set(explanationText(explanation), (tally.explained.get(explanationText(explanation)) ?? 0) + 1);
  tally.connections += differ.connections;
  const suspected = unexplained(first);
  const names = suspected.length === 0 ? "" : `, ${suspected.length} suspected`;
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  process.stdout.write(
    `world ${seed}: ${questions.questions.flat().length} questions in ${seconds} s, ${first.length} permitted differences${names}\n`,
  );
  if (suspected.length === 0) return;
  // Once more from the start: what a busy machine does is not seen twice.
  const again = unexplained(await differ.compare(world, questions)).filter(({ about }) => suspected.some((one) => one.about === about));
  if (again.length === 0) {
    for (const one of suspected) process.stdout.write(`  seen once only: ${differenceText(one)}\n`);
    return;
  }
  tally.differing += 1;
  for (const one of again) process.stdout.write(`  ${differenceText(one)}\n`);
  await printSmallest(world, again, differ, compared);
}

/** Print the smallest world for the first of some differences. */
async function printSmallest(world: World, [first]: readonly Difference[], differ: Differ, compared: Compared): Promise<void> {
  if (first === undefined) return;
  let last = first;
  const differs = async (smaller: World): Promise<boolean> => {
    const [found] = unexplained(await differ.compare(smaller, askedAgain(smaller, first.again), IMPATIENCE));
    if (found !== undefined) last = found;
    return found !== undefined;
  };
  const smallest = await minimise({ phases: world.phases.slice(0, first.phase + 1) }, differs, MINIMISING);
  process.stdout.write(`${worldText(smallest, last, compared)}\n`);
}

function unexplained(differences: readonly Difference[]): readonly Difference[] {
  return differences.filter(({ explanation }) => explanation === undefined);
}

await runCommand({ name: "e2e:differential", usage: USAGE, read, execute: main });

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createExec } from "@turnout/host";
import { quoted } from "@turnout/house/shell-word";
import type { Deployment } from "../proxies.ts";
import { commandsOf } from "./runbook.ts";
import { startTraffic } from "./traffic.ts";
import type { Tally, Traffic } from "./traffic.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const COMMAND_MS = 300_000;
/** New connections that each client tries before, between and after moves. */
const TRIES = 100;
/** The backend that the runbook is written for. */
const WRITTEN_FOR = "nft";

/** What is moved, and with which programs. */
export interface MoveOptions extends Deployment {
  readonly backend: string;
  /** Path of kubectl. */
  readonly program: string;
  /** An image with Node that every node has. */
  readonly image: string;
  readonly say: (line: string) => void;
}

/**
 * Follow both runbooks of docs/install.md, command for command, from kube-proxy to Turnout and back, with traffic on.
 * @returns whether no connection was lost. @throws {Error} when a command of a runbook fails.
 */
export async function runMove(options: MoveOptions): Promise<boolean> {
  const { cluster, kubectl, backend, image, say } = options;
  const page = await readFile(new URL("../../../docs/install.md", import.meta.url), "utf8");
  const traffic = await startTraffic(cluster, kubectl, image);
  try {
    await traffic.more(TRIES);
    const areWell: boolean[] = [];
    for (const heading of ["From kube-proxy to Turnout", "Back to kube-proxy"]) {
      const before = await traffic.count();
      for (const command of commandsOf(page, heading)) {
        const typed = command.replaceAll(`overlays/${WRITTEN_FOR}`, `overlays/${backend}`);
        say(`$ ${typed}`);
        await type(typed, options);
      }
      await traffic.more(TRIES);
      areWell.push(notify(heading, before, await settled(traffic), say));
    }
    return areWell.every(Boolean);
  } finally {
    await traffic.stop();
  }
}

/** A connection that is lost is told as such when it was waited for, so what was counted a moment ago says nothing of the last seconds. */
async function settled(traffic: Traffic): Promise<ReadonlyMap<string, Tally>> {
  await traffic.more(TRIES * 3);
  return await traffic.count();
}

/** Run a command of the runbook as it stands there, in a shell whose kubectl is the cluster's. @throws {Error} with what it complains about. */
async function type(command: string, { cluster, program }: MoveOptions): Promise<void> {
  const kubectl = [...cluster.before, program, "--kubeconfig", cluster.kubeconfig].map(quoted).join(" ");
  const { code, stderr, stdout } = await createExec().run("sh", ["-ec", `cd ${quoted(ROOT)}\nkubectl() { ${kubectl} "$@"; }\n${command}`], {
    timeoutMs: COMMAND_MS,
  });
  if (code !== 0) throw new Error(`${command}\nended with ${code}: ${stderr.trim()} ${stdout.trim()}`);
}

/** Print what was lost, and say whether nothing was. */
function notify(
  heading: string,
  before: ReadonlyMap<string, Tally>,
  after: ReadonlyMap<string, Tally>,
  say: (line: string) => void,
): boolean {
  const sum = (of: (tally: Tally) => number): number => {
    const total = (tallies: ReadonlyMap<string, Tally>): number => [...tallies.values()].map(of).reduce((all, one) => all + one, 0);
    return total(after) - total(before);
  };
  const kept = [...before.values()].reduce((all, { kept: own, broken }) => all + own - broken, 0);
  const [broken, failed, tried] = [sum((one) => one.broken), sum((one) => one.failed), sum((one) => one.tried)];
  say(`${heading}: ${broken} of ${kept} kept connections lost, ${failed} of ${tried} new ones failed`);
  for (const [who, { why, broken: lost, failed: refused }] of after) if (lost + refused > 0) say(`  ${who}: the last: ${why}`);
  return broken === 0 && failed === 0 && tried > 0;
}

/** Which mode of kube-proxy a move begins with. */
export function controlFor(backend: string): string {
  return backend === "iptables" ? "kube-proxy-iptables" : "kube-proxy-nftables";
}

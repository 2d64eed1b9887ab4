import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runChangesets, runIsolated } from "./npm.ts";
import type { Manifest } from "./packages.ts";

const CHART = "deploy/kubernetes/chart/Chart.yaml";

/**
 * Raise the versions of all packages with a changeset, and of what goes with them: the pins, the lock file, the Helm chart.
 *
 * @param snapshot a word for versions that are only tried, e.g. `nightly`
 * @throws {Error} what changesets and npm say.
 */
export async function raiseVersions(root: string, snapshot: string | undefined): Promise<string> {
  await runChangesets({}, root, ["version", ...(snapshot === undefined ? [] : ["--snapshot", snapshot])]);
  const { version } = JSON.parse(await readFile(join(root, "packages", "cli", "package.json"), "utf8")) as Manifest;
  await writeFile(join(root, CHART), chartWithVersion(await readFile(join(root, CHART), "utf8"), version));
  // Nothing is installed that was not there: the lock file has the packages' own versions.
  await runIsolated({}, root, ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]);
  return version;
}

/** Set the versions in a Chart.yaml: the chart goes with the command. Pure. @throws {Error} when it has not both. */
export function chartWithVersion(chart: string, version: string): string {
  const lines = /^(version|appVersion): .*$/gm;
  if (chart.match(lines)?.length !== 2) throw new Error(`${CHART} has no version and appVersion, each on a line of its own`);
  return chart.replace(lines, `$1: ${version}`);
}

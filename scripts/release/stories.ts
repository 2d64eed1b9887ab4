import { cp, mkdtemp } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { compareVersions } from "../needs.ts";
import { runIsolated, type NpmSettings } from "./npm.ts";
import { install, installedSize, type Project } from "./project.ts";

/** The oldest Node that the packages run on. */
const OLDEST = "22.19";

/** Build, test and examine the example backend in a folder of its own, with packages from the registry only. */
export async function runExampleBackend(root: string, parent: string, npm: NpmSettings): Promise<string> {
  const folder = await mkdtemp(join(parent, "backend-"));
  await cp(join(root, "examples", "custom-backend"), folder, { recursive: true, filter: (path) => !/\/(?:dist|node_modules)$/.test(path) });
  const shell = (command: string): Promise<string> => runIsolated(npm, folder, ["sh", "-c", command]);
  await shell("npm install --silent --no-audit --no-fund");
  const { bytes } = await installedSize({ folder, npm });
  await shell("npm run --silent build && npm test --silent");
  const said = await shell("npx turnout conformance --backend ./src/index.ts --host ./src/testing.ts");
  const last = said
    .trim()
    .split("\n")
    .findLast((line) => line.includes("conforms"));
  if (last === undefined) throw new Error(`the example backend does not conform:\n${said}`);
  return `${last.trim()}, installed ${(bytes / 1e6).toFixed(1)} MB`;
}

/** Play the demo with the published command. `onLoopback` needs no rights; else it is the one in network namespaces, for root. */
export async function runDemoOf(project: Project, onLoopback: boolean): Promise<string> {
  const command = `npx turnout demo ${onLoopback ? "--backend userspace" : ""}`;
  const said = await runIsolated(project.npm, project.folder, ["sh", "-c", command]);
  const total = /\b[\d,]+ requests? in .*, 0 failed;.*, 0 broken/.exec(said)?.[0];
  if (total === undefined) throw new Error(`the demo lost traffic:\n${said}`);
  return total.replace(/;.*/, "");
}

/** Install the command as on a machine whose own Node is too old: it brings one that will do, and runs on that. */
export async function installUnderOldNode(parent: string, npm: NpmSettings): Promise<string> {
  const nodeFolder = await oldNodeFolder();
  if (nodeFolder === undefined) return "no old Node here";
  const old = { ...npm, nodeFolder };
  const project = await install(parent, old, ["@turnout/cli@next"]);
  const version = await runIsolated(old, project.folder, ["npx", "turnout", "--version"]);
  const { bytes } = await installedSize(project);
  return `${(await runIsolated(old, project.folder, ["node", "--version"])).trim()} runs turnout ${version.trim()}, ${(bytes / 1e6).toFixed(1)} MB`;
}

/** Folder on PATH with a Node that is too old for Turnout, outside of any project. */
export async function oldNodeFolder(): Promise<string | undefined> {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter).filter((one) => !one.includes("node_modules"))) {
    const version = await promisify(execFile)(join(folder, "node"), ["--version"]).then(
      ({ stdout }) => stdout.trim().slice(1),
      () => OLDEST,
    );
    if (compareVersions(version, OLDEST) < 0) return folder;
  }
  return undefined;
}

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pack, type Build, type Packed } from "./build.ts";
import { CHANNELS, promote, publish, tagsOf } from "./channels.ts";
import type { Channel } from "./channels.ts";
import { contentProblems, readContents } from "./contents.ts";
import { look, type Check } from "./findings.ts";
import { runIsolated, type NpmSettings } from "./npm.ts";
import {
  checkTypes,
  importEntryPoints,
  install,
  installed,
  installedSize,
  licenceProblems,
  runCommands,
  splitEntryPoints,
} from "./project.ts";
import { startRegistry } from "./registry.ts";
import { installUnderOldNode, runDemoOf, runExampleBackend } from "./stories.ts";

/** What a dry run needs to know. */
export interface DryRunOptions {
  readonly root: string;
  /** Packed earlier; default: what is packed now. */
  readonly build: Build | undefined;
  /** Told what is done next. */
  readonly say: (line: string) => void;
}

/** Play a whole release against a registry of this machine's own, and look at what a user would get. */
export async function dryRun(options: DryRunOptions): Promise<readonly Check[]> {
  const { root, say } = options;
  const folder = await mkdtemp(join(tmpdir(), "turnout-release-"));
  const tools = join(root, "scripts", "release", "tools");
  try {
    say("installing the registry");
    await runIsolated({}, tools, ["npm", "ci", "--ignore-scripts", "--silent"]);
    const registry = await startRegistry(tools, join(folder, "registry"));
    try {
      say("packing");
      const npm = { userconfig: registry.userconfig };
      const build = options.build ?? (await pack(npm, root, await mkdtemp(join(folder, "build-"))));
      return await execute({ root, folder, tools, npm, build }, say);
    } finally {
      await registry.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Scene {
  readonly root: string;
  /** For all that is written. */
  readonly folder: string;
  /** Where the registry and the linter of packages are installed. */
  readonly tools: string;
  readonly npm: NpmSettings;
  readonly build: Build;
}

async function execute(scene: Scene, say: DryRunOptions["say"]): Promise<readonly Check[]> {
  const { root, folder, npm, build } = scene;
  const checks: Check[] = [];
  const story = async (subject: string, how: () => Promise<string>): Promise<void> => {
    say(subject);
    checks.push(await look(subject, "played", async () => ({ detail: await how() })));
  };
  await story("publish to nightly, twice", () => publishTwice(npm, build));
  await story("promote nightly to next", () => runPromotion(npm, build, "nightly", "next"));
  for (const one of build.packages) {
    say(`look at ${one.name}`);
    checks.push(...(await lookAt(scene, one)));
  }
  await story("install under an old Node", () => installUnderOldNode(folder, npm));
  await story("example backend", () => runExampleBackend(root, folder, npm));
  const user = await install(folder, npm, ["@turnout/cli@next"]);
  await story("demo on loopback", () => runDemoOf(user, true));
  if (process.getuid?.() === 0) await story("demo in namespaces", () => runDemoOf(user, false));
  await story("promote next to stable", () => runPromotion(npm, build, "next", "stable"));
  return checks;
}

/** A release that was cut off is begun again: the second time finds everything there. */
async function publishTwice(npm: NpmSettings, build: Build): Promise<string> {
  await publish(npm, build, "nightly");
  const again = await publish(npm, build, "nightly");
  const unowned = again.filter((line) => !line.includes("was there"));
  if (unowned.length > 0) throw new Error(`published a second time: ${unowned.join(", ")}`);
  return `${again.length} published`;
}

/** A build goes from channel to channel as it is. What is refused on the way: channels.test.ts. */
async function runPromotion(npm: NpmSettings, build: Build, from: Channel, to: Channel): Promise<string> {
  await promote(npm, build, from, to);
  for (const { name, version } of build.packages) {
    const found = (await tagsOf(npm, build, name))[CHANNELS[to]];
    if (found !== version) throw new Error(`${name}: ${to} has ${found ?? "nothing"}, not ${version}`);
  }
  return `${build.packages.length} moved`;
}

async function lookAt({ root, folder, tools, npm, build }: Scene, one: Packed): Promise<readonly Check[]> {
  const { name, version } = one;
  const project = await install(folder, npm, [`${name}@next`]);
  try {
    const home = join(project.folder, "node_modules", name);
    const contents = await readContents(home);
    const { manifest } = contents;
    const { standalone, withPeers } = splitEntryPoints(manifest);
    const all = await installed(project);
    const { bytes } = await installedSize(project);
    const checks = [
      await look(name, "MB", async () => ({ detail: (bytes / 1e6).toFixed(1) })),
      await look(name, "packages", async () => ({ detail: String(all.length) })),
      await look(name, "contents", async () => ({
        problems: contentProblems(contents, await readFile(join(root, "LICENSE"), "utf8"), [root, `${homedir()}/.`]),
      })),
      await look(name, "checksums", async () => ({
        problems: all.flatMap((other) => {
          const packed = build.packages.find((candidate) => candidate.name === other.name);
          return packed === undefined || packed.integrity === other.integrity ? [] : [`${other.name} is not what was packed`];
        }),
      })),
      await look(name, "licences", async () => ({ problems: licenceProblems(all) })),
    ];
    if (standalone.length > 0) {
      checks.push(
        await look(name, "exports", () => lint(tools, npm, home)),
        await look(name, "types", () => checkTypes(root, project, standalone)),
        await look(name, "import", async () => {
          const entryPoints = await importEntryPoints(project, standalone);
          return { problems: entryPoints.filter(({ names }) => names === 0).map(({ entryPoint }) => `${entryPoint} exports nothing`) };
        }),
      );
    }
    if (manifest.bin !== undefined) checks.push(await look(name, "commands", () => runCommands(project, { ...manifest, version })));
    if (withPeers.length > 0) {
      const peers = Object.keys(manifest.peerDependencies ?? {}).map((peer) => `${peer}@next`);
      await runIsolated(npm, project.folder, ["npm", "install", "--silent", ...peers]);
      checks.push(
        await look(name, "doors for tests", async () => {
          await checkTypes(root, project, withPeers);
          await importEntryPoints(project, withPeers);
        }),
      );
    }
    return checks;
  } finally {
    await rm(project.folder, { recursive: true, force: true });
  }
}

async function lint(tools: string, npm: NpmSettings, home: string): Promise<void> {
  await runIsolated(npm, home, [
    process.execPath,
    join(tools, "node_modules", "publint", "src", "cli.js"),
    "run",
    ".",
    "--strict",
    "--pack",
    "false",
  ]);
}

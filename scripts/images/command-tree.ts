import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { launcherFlags } from "../shell-word.ts";
import { joinTrees } from "./file-tree.ts";
import type { Entry, FileTree } from "./file-tree.ts";
import { npmLicences } from "./licences.ts";
import type { NpmPackage } from "./npm-lock.ts";
import type { NpmPackages } from "./npm-packages.ts";
import type { Platform } from "./platforms.ts";

/** Where the command is in an image. */
const HOME = "/usr/lib/turnout/node_modules";
const MAIN = `${HOME}/@turnout/cli/dist/command/main.js`;

/** What the bundle loads from beside itself (docs/adr/0046-the-command-is-bundled.md), and what that loads. gRPC's own loader of .proto files is never asked. */
const OUTSIDE = ["@grpc/grpc-js", "@js-sdsl/ordered-map", "koffi"];

/** What of our packages is read at run time, besides the bundle: their places, a page, programs of BPF. */
const OURS = ["*/package.json", "cli/dist/command/*.js", "client/web/*", "backend-ebpf/dist/programs/*.bpf.o"];

/** For those who run a command in a container: by its name, and without a shell, as there is none. */
const PROGRAM = `#!/usr/bin/node\nimport "${MAIN}";\n`;

/** Say what a container of an image starts: Node with the launcher's flags, and the command. @throws {Error} when the launcher can't be read. */
export function entrypointOf(root: string): readonly string[] {
  return ["/usr/bin/node", ...launcherFlags(readFileSync(join(root, "packages/client/launcher.sh"), "utf8")), MAIN];
}

/**
 * Say whether Node reads this file of a package when the command runs. Pure.
 *
 * Edges: of native files only that of the machine, for glibc.
 */
export function isReadAtRunTime(path: string, { npmCpu }: Platform): boolean {
  if (path.endsWith(".node")) return path.includes(`linux-${npmCpu}/`) || path.includes(`linux_${npmCpu}/`);
  return /(?:^\/package\.json|\.[cm]?js)$/.test(path) && !/\/(?:esm|umd|test)\//.test(path);
}

function inFolder(folder: string, tree: FileTree): FileTree {
  return new Map([...tree].map(([path, entry]) => [`${folder}${path}`, entry]));
}

function ours(root: string): FileTree {
  const paths = globSync(OURS, { cwd: join(root, "packages") }).toSorted();
  return new Map(
    paths.map((path): [string, Entry] => [
      `${HOME}/@turnout/${path}`,
      { kind: "file", mode: 0o644, content: { path: join(root, "packages", path) } },
    ]),
  );
}

/**
 * Make the part of an image that is the command `turnout`, of a checkout that is built.
 *
 * @param closure what the command needs, from package-lock.json
 * @throws {Error} when the bundle is not there, or a licence; what npm says.
 */
export function commandTree(root: string, closure: readonly NpmPackage[], npm: NpmPackages, platform: Platform): FileTree {
  const outside = closure.filter(({ name }) => OUTSIDE.includes(name) || name === `@koromix/koffi-linux-${platform.npmCpu}`);
  const loaded = outside.map((one) => {
    const read = [...npm.files(one)].filter(([path]) => isReadAtRunTime(path, platform));
    return inFolder(`${HOME}/${one.name}`, new Map(read));
  });
  const own = ours(root);
  for (const needed of [MAIN, `${HOME}/@turnout/backend-ebpf/dist/programs/packets.bpf.o`])
    if (!own.has(needed)) throw new Error(`${needed} was not built: run npm run build, with clang installed`);
  const program: Entry = { kind: "file", mode: 0o755, content: Buffer.from(PROGRAM) };
  return joinTrees(own, ...loaded, npmLicences(root, closure), new Map([["/usr/bin/turnout", program]]));
}

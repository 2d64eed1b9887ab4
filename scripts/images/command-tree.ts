import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { joinTrees } from "./file-tree.ts";
import type { Entry, FileTree } from "./file-tree.ts";
import type { NpmPackage } from "./npm-lock.ts";
import type { NpmPackages } from "./npm-packages.ts";
import type { Platform } from "./platforms.ts";

/** Where the command is in an image. */
const HOME = "/usr/lib/turnout/node_modules";
const MAIN = `${HOME}/@turnout/cli/dist/command/main.js`;
/** Where the licences of all that the command is built from are. */
const LICENCES = "/usr/share/doc/turnout";

/** What the bundle loads from beside itself (docs/adr/0046-the-command-is-bundled.md), and what that loads. gRPC's own loader of .proto files is never asked. */
const OUTSIDE = ["@grpc/grpc-js", "@js-sdsl/ordered-map", "koffi", "netlink", "node-gyp-build"];

/** What of our packages is read at run time, besides the bundle: their places, a page, programs of BPF. */
const OURS = ["*/package.json", "cli/dist/command/*.js", "client/web/*", "backend-ebpf/dist/programs/*.bpf.o"];

/** Run it by its name, with its flag and without a shell: there is none. */
const PROGRAM = `#!/usr/bin/node --max-semi-space-size=2\nimport "${MAIN}";\n`;

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

function licences(root: string, closure: readonly NpmPackage[]): FileTree {
  const files = closure.flatMap(({ name, place }) => {
    const [file] = globSync(["LICENSE*", "LICENCE*", "license*"], { cwd: join(root, place) }).toSorted();
    return file === undefined ? [] : [[`${LICENCES}/${name}/LICENSE`, join(root, place, file)] as const];
  });
  return new Map(files.map(([path, file]) => [path, { kind: "file", mode: 0o644, content: readFileSync(file) }]));
}

/**
 * Make the part of an image that is the command `turnout`, of a checkout that is built.
 *
 * @param closure what the command needs, from package-lock.json
 * @throws {Error} when the bundle is not there; what npm says.
 */
export function commandTree(root: string, closure: readonly NpmPackage[], npm: NpmPackages, platform: Platform): FileTree {
  const outside = closure.filter(({ name }) => OUTSIDE.includes(name) || name === `@koromix/koffi-linux-${platform.npmCpu}`);
  const loaded = outside.map((one) => {
    const read = [...npm.files(one)].filter(([path]) => isReadAtRunTime(path, platform));
    return inFolder(`${HOME}/${one.name}`, new Map(read));
  });
  const own = ours(root);
  if (!own.has(MAIN)) throw new Error("the command is not bundled: run npm run build");
  const program: Entry = { kind: "file", mode: 0o755, content: Buffer.from(PROGRAM) };
  return joinTrees(own, ...loaded, licences(root, closure), new Map([["/usr/bin/turnout", program]]));
}

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/** Imports what its arguments name, and prints every module that was loaded. */
const SCRIPT = `import { registerHooks } from "node:module";
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
for (const name of process.argv.slice(1)) await import(name);
process.stdout.write(JSON.stringify(loaded));`;

interface Loaded {
  /** Packages that are not this one, in order. */
  readonly packages: readonly string[];
  /** Folders below this package's `src`, in order. */
  readonly layers: readonly string[];
}

/** What a process loads that imports these, from the sources. */
async function loadedBy(...names: readonly string[]): Promise<Loaded> {
  const args = ["--conditions=@turnout/source", "--input-type=module", "--eval", SCRIPT, ...names];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: PACKAGE });
  const urls = JSON.parse(stdout) as readonly string[];
  const found = (pattern: RegExp): readonly string[] => [...new Set(urls.flatMap((url) => pattern.exec(url)?.[1] ?? []))].toSorted();
  const core = found(/\/packages\/(core)\/src\//);
  return { packages: [...core, ...found(/\/node_modules\/((?:@[^/]+\/)?[^/]+)/)], layers: found(/\/packages\/client\/src\/([^/]+)\//) };
}

/** What a daemon needs, and nobody who only follows the node-state API. */
const OF_DAEMONS = ["pino", "prom-client", "yaml"];

test("the door of those who follow the node-state API loads no package but core, and no daemon", async () => {
  expect(await loadedBy("@turnout/client")).toEqual({ packages: ["core"], layers: ["api", "process"] });
});

test("neither does anything that it loads later: every file of the API, and the protocol, is without daemon and its libraries", async () => {
  const files = readdirSync(`${PACKAGE}src/api`, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .map((path) => `${PACKAGE}src/api/${path}`);
  const { packages, layers } = await loadedBy("@turnout/client/protocol", ...files);
  expect(layers).toEqual(["api", "gen"]);
  expect(packages).toEqual(["core", "@bufbuild/protobuf"]);
});

test("the door of backend processes loads what they need, and gRPC only when a node-state server is asked", async () => {
  const { packages, layers } = await loadedBy("@turnout/client/daemon");
  expect(layers).toEqual(["api", "daemon", "process", "sockets"]);
  expect(packages).toEqual(expect.arrayContaining(OF_DAEMONS));
  expect(packages.filter((name) => name.startsWith("@grpc") || name.startsWith("@bufbuild"))).toEqual([]);
});

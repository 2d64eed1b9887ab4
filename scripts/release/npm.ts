import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const TIMEOUT_MS = 600_000;

/** How one npm is set up: where it looks, and as whom. */
export interface NpmSettings {
  /** Its configuration file (registry, token, cache); without one, the machine's own. */
  readonly userconfig?: string;
  /** Whether the registry is to be told, and signed by Sigstore, which workflow published: npm does that in hosted workflows only. */
  readonly hasProvenance?: boolean;
  /** Folder of the Node to run it, first on PATH; default: that of this process. */
  readonly nodeFolder?: string;
}

/** How npm was set up for this process: a workflow's step (actions/setup-node) names a configuration file with the registry and the token in its environment. Pure. */
export function npmSettingsOf(env: NodeJS.ProcessEnv): NpmSettings {
  const userconfig = env["NPM_CONFIG_USERCONFIG"];
  return { hasProvenance: env["NPM_CONFIG_PROVENANCE"] === "true", ...(userconfig === undefined ? {} : { userconfig }) };
}

/** Run a command as somebody would in a project of their own: configured by nobody, without the programs of the checkout. */
export async function runIsolated(settings: NpmSettings, cwd: string, command: readonly string[]): Promise<string> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_"));
  const path = (process.env["PATH"] ?? "").split(":").filter((folder) => !folder.includes("node_modules"));
  const env = {
    ...Object.fromEntries(inherited),
    PATH: [settings.nodeFolder ?? dirname(process.execPath), ...path].join(":"),
    ...(settings.userconfig === undefined ? {} : { npm_config_userconfig: settings.userconfig }),
    ...(settings.hasProvenance === true ? { npm_config_provenance: "true" } : {}),
  };
  const [file = "", ...args] = command;
  const { stdout } = await promisify(execFile)(file, args, { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 2 ** 28 });
  return stdout;
}

/** Run the repository's changesets there. */
export async function runChangesets(settings: NpmSettings, root: string, args: readonly string[]): Promise<string> {
  return await runIsolated(settings, root, [process.execPath, join(root, "node_modules", "@changesets", "cli", "bin.js"), ...args]);
}

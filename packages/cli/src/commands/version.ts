import { addLogOptions, quietLogFor, type CommonOptions } from "@turnout/client/daemon";
import type { BackendModule } from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { loadBackend, namesOn } from "../registry.ts";
import { probeBackend } from "../probe-backend.ts";

/** What `turnout version` says. */
export interface Versions {
  readonly turnout: string;
  /** Of the contract between the core and backends. */
  readonly contract: number;
  readonly node: string;
  /** Of backends, by their names. */
  readonly backends: Readonly<Record<string, string>>;
  /** Kernel and tools, as the backends found them. */
  readonly host: Readonly<Record<string, string>>;
}

interface VersionOptions extends CommonOptions {
  readonly output: "text" | "json";
}

const EXAMPLES = `
turnout --version prints the first number alone.`;

/** Add `turnout version`. */
export function addVersion(program: Command, env: Environment): void {
  const command = program.command("version").description("print the versions of turnout, its backends, the kernel and the tools they use");
  command.addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"));
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: VersionOptions) => {
    const versions = await versionsHere(options, env);
    env.out(options.output === "json" ? `${JSON.stringify(versions, undefined, 2)}\n` : versionsText(versions));
  });
}

async function versionsHere(options: VersionOptions, env: Environment): Promise<Versions> {
  const world = env.createWorld(quietLogFor(options, env));
  const modules = await Promise.all(namesOn(env.platform).map((name) => loadBackend(name, env.workingDirectory)));
  const host: Record<string, string> = {};
  for (const module of modules) Object.assign(host, (await probeBackend(module, {}, world, env.signal)).versions);
  return {
    turnout: env.version,
    contract: Math.max(...modules.map(({ contract }) => contract)),
    node: process.version,
    backends: Object.fromEntries(modules.map(({ name }) => [name, backendVersion(name, env)])),
    host,
  };
}

/** Packages pin one another exactly, so what this one depends on is what is there. */
function backendVersion(name: BackendModule["name"], { dependencies }: Environment): string {
  return dependencies[`@turnout/backend-${name}`] ?? "unknown";
}

function versionsText({ turnout, contract, node, backends, host }: Versions): string {
  const { kernel = "unknown", node: _, ...others } = host;
  const tools = Object.fromEntries(Object.entries(others).filter(([, version]) => /^v?\d/.test(version)));
  const list = (versions: Readonly<Record<string, string>>): string =>
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ");
  const lines = [
    ["turnout", turnout],
    ["backends", `${list(backends)} (contract ${contract})`],
    ["node", node],
    ["kernel", kernel],
    ["tools", list(tools) || "none"],
  ];
  return lines.map(([what = "", text = ""]) => `${what.padEnd(9)} ${text}\n`).join("");
}

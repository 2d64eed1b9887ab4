import {
  runConfig,
  withTimeout,
  addConfigFlags,
  addLogOptions,
  addTimeout,
  apiTls,
  configFor,
  quietLogFor,
  timeoutMs,
  type CommonOptions,
} from "@turnout/client/daemon";
import { abilitiesOf, renderFamily, renderingText, withWorldOf, type Rendering } from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "@turnout/server/node-state";
import { addBackendOptions, addSourceOptions, familiesOf } from "../options.ts";
import { chooseBackend, EXAMPLE_BACKEND } from "../registry.ts";

interface RenderOptions extends CommonOptions {
  readonly source: string;
  readonly backend: string;
  readonly output: "text" | "json";
  readonly family: string;
}

const EXAMPLES = `
Examples:
  turnout render --backend ${EXAMPLE_BACKEND} --source file:services.yaml
  turnout render --backend ${EXAMPLE_BACKEND} --source file:services.yaml --family IPv4 -o json

Nothing is applied; it needs neither root nor the backend's tools. It does not look at this host: where neither
--backend nor a mode of the configuration names a backend, it takes ${EXAMPLE_BACKEND}. turnout run looks at what is in force.`;

/** Add `turnout render`. */
export function addRender(program: Command, env: Environment): void {
  const command = program.command("render").description("show the kernel objects and the full plan of a backend, nothing applied");
  addSourceOptions(command);
  addBackendOptions(command, "auto");
  command
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"))
    .option("--family <family>", "IPv4, IPv6 or both", "both");
  addTimeout(command, "give up after this long without a complete state");
  addLogOptions(command);
  addConfigFlags(command, "state");
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: RenderOptions) => {
    await renderState(command, options, env);
  });
}

async function renderState(command: Command, options: RenderOptions, env: Environment): Promise<void> {
  const families = familiesOf(options.family);
  const loaded = await configFor(command, options, env);
  const log = quietLogFor(options, env);
  const world = env.createWorld(log);
  const { module, because } = await chooseBackend({
    world,
    env,
    spec: options.backend,
    mode: loaded.mode,
    host: "ignored",
    takesOver: false,
  });
  const config = runConfig(loaded, module, { isUnnamed: because !== undefined });
  for (const warning of config.warnings) log.warn(warning);
  const state = new NodeStateSource({ source: options.source, tls: apiTls(options), config, env, clock: world.clock, log });
  const body = async (stop: AbortSignal): Promise<void> => {
    const renderings: Rendering[] = [];
    for (const family of families) {
      if (abilitiesOf(module).capabilities[family] !== true) continue;
      const changes = await state.feed(family).next(stop);
      renderings.push(await withWorldOf(module, world, (own) => renderFamily(module, config.backendOptions, changes, own, stop)));
    }
    const text = (): string => `${because === undefined ? "" : unnamed(module.name)}${renderings.map(renderingText).join("\n")}`;
    env.out(options.output === "json" ? `${JSON.stringify(renderings, undefined, 2)}\n` : text());
  };
  await withTimeout(`source ${options.source}`, timeoutMs(options), world.clock, env.signal, (stop) => state.during(body, stop));
}

/** Nothing names a backend: a running proxy may have chosen another one. */
function unnamed(backend: string): string {
  return `# backend ${backend}: no --backend and no mode names another; turnout run would go on with one whose rules are in force here\n\n`;
}

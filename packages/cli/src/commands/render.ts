import { runConfig, withTimeout } from "@turnout/client/daemon";
import {
  fitRow,
  type Backend,
  type BackendModule,
  type ChangeSet,
  type IPFamily,
  type KernelObject,
  type Plain,
  type World,
} from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "../node-state.ts";
import {
  addBackendOptions,
  addConfigFlags,
  addLogOptions,
  addSourceOptions,
  addTimeout,
  apiTls,
  configFor,
  familiesOf,
  quietLogFor,
  timeoutMs,
  type CommonOptions,
} from "../options.ts";
import { chooseBackend } from "../registry.ts";

interface RenderOptions extends CommonOptions {
  readonly source: string;
  readonly backend: string;
  readonly output: "text" | "json";
  readonly family: string;
}

/** What a backend would bring into force on an empty host, one family. */
export interface Rendering {
  readonly family: IPFamily;
  readonly objects: readonly KernelObject[];
  /** The plan as text. */
  readonly plan: string;
}

const EXAMPLES = `
Examples:
  turnout render --backend nft --source file:services.yaml
  turnout render --backend nft --source file:services.yaml --family IPv4 -o json

Nothing is applied; it needs neither root nor the backend's tools.`;

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
  try {
    const { signal, workingDirectory } = env;
    const module = await chooseBackend({ spec: options.backend, mode: loaded.mode, world, workingDirectory, signal, needsHost: false });
    const config = runConfig(loaded, module.name);
    for (const warning of config.warnings) log.warn(warning);
    const state = new NodeStateSource({ source: options.source, tls: apiTls(options), config, env, clock: world.clock, log });
    const body = async (stop: AbortSignal): Promise<void> => {
      const renderings: Rendering[] = [];
      for (const family of families) {
        if (module.capabilities[family] !== true) continue;
        const changes = await state.feed(family).next(stop);
        renderings.push(await renderFamily(module, config.backendOptions, changes, world, stop));
      }
      env.out(options.output === "json" ? `${JSON.stringify(renderings, undefined, 2)}\n` : renderings.map(renderingText).join("\n"));
    };
    await withTimeout(`source ${options.source}`, timeoutMs(options), world.clock, signal, (stop) => state.during(body, stop));
  } finally {
    world.close();
  }
}

/**
 * Render one full change set and plan it for an empty host.
 * @throws {ProxyError} what the backend's options or its probe fail with.
 */
export async function renderFamily(
  module: BackendModule,
  backendOptions: Readonly<Record<string, Plain>>,
  changes: ChangeSet,
  world: World,
  signal: AbortSignal,
): Promise<Rendering> {
  const { node, family, set } = changes;
  if (node === undefined) throw new Error("the first change set of a feed has the node");
  const parsed = module.parseOptions(backendOptions);
  const { facts: host } = await module.probe(parsed, world, signal);
  const backend: Backend<unknown, KernelObject, unknown> = await module.open(parsed, family, world, signal);
  try {
    const rows = set.flatMap((row) => fitRow(row, module.capabilities).row ?? []);
    const all = [...backend.skeleton({ node, host }), ...rows.flatMap((row) => backend.render(row, { node, host }))];
    // Rows may share objects; the ledger would keep one of each.
    const objects = [...new Map(all.map((object) => [`${object.kind} ${object.key}`, object])).values()];
    const plan = backend.plan({ put: objects.map((after) => ({ after })), remove: [], lingering: [], nowMs: world.clock.nowMs() });
    return { family, objects, plan: backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2) };
  } finally {
    await backend.close(signal);
  }
}

function renderingText({ family, objects, plan }: Rendering): string {
  const lines = objects.map(({ kind, key, value }) => `${kind} ${key} = ${JSON.stringify(value)}`);
  return `# ${family}: ${objects.length} objects\n${lines.join("\n")}\n\n# ${family}: the plan for an empty host\n${plan.trimEnd()}\n`;
}

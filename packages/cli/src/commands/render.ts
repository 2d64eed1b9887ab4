import { runConfig, withTimeout } from "@turnout/client/daemon";
import {
  abilitiesOf,
  fitRow,
  openDataplane,
  probeModule,
  withWorldOf,
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
import { chooseBackend, EXAMPLE_BACKEND } from "../registry.ts";

interface RenderOptions extends CommonOptions {
  readonly source: string;
  readonly backend: string;
  readonly output: "text" | "json";
  readonly family: string;
}

/** What a backend would bring into force on an empty host, one family. */
export interface Rendering {
  readonly backend: string;
  readonly family: IPFamily;
  readonly objects: readonly KernelObject[];
  /** The plan as text. */
  readonly plan: string;
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
  const { signal, platform, workingDirectory } = env;
  const place = { world, platform, workingDirectory, signal };
  const { module, because } = await chooseBackend({
    ...place,
    spec: options.backend,
    mode: loaded.mode,
    needsHost: false,
    takesOver: false,
  });
  const config = runConfig(loaded, module);
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
  await withTimeout(`source ${options.source}`, timeoutMs(options), world.clock, signal, (stop) => state.during(body, stop));
}

/**
 * Render one full change set and plan it for an empty host.
 * @throws {ProxyError} what the backend's options or its probe fail with.
 */
async function renderFamily(
  module: BackendModule,
  backendOptions: Readonly<Record<string, Plain>>,
  changes: ChangeSet,
  world: World,
  signal: AbortSignal,
): Promise<Rendering> {
  const { node, family, set } = changes;
  if (node === undefined) throw new Error("the first change set of a feed has the node");
  const parsed = module.parseOptions(backendOptions);
  const { facts: host, capabilities } = await probeModule(module, parsed, world, signal);
  const dataplane = await openDataplane(module, parsed, world, signal);
  try {
    const backend = dataplane.family(family);
    const rows = set.flatMap((row) => fitRow(row, capabilities).row ?? []);
    const all = [...backend.skeleton({ node, host }), ...rows.flatMap((row) => backend.render(row, { node, host }))];
    // Rows may share objects; the ledger would keep one of each.
    const objects = [...new Map(all.map((object) => [`${object.kind} ${object.key}`, object])).values()];
    const plan = backend.plan({ put: objects.map((after) => ({ after })), remove: [], lingering: [], nowMs: world.clock.nowMs() });
    return { backend: module.name, family, objects, plan: backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2) };
  } finally {
    await dataplane.close(signal);
  }
}

/** Nothing names a backend: a running proxy may have chosen another one. */
function unnamed(backend: string): string {
  return `# backend ${backend}: no --backend and no mode names another; turnout run would go on with one whose rules are in force here\n\n`;
}

function renderingText({ family, objects, plan }: Rendering): string {
  const lines = objects.map(({ kind, key, value }) => `${kind} ${key} = ${JSON.stringify(value)}`);
  return `# ${family}: ${objects.length} objects\n${lines.join("\n")}\n\n# ${family}: the plan for an empty host\n${plan.trimEnd()}\n`;
}

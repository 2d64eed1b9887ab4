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
import { applyChangeSet, type ChangeSet, type IPFamily, type ServicePort } from "@turnout/core";
import { Option, type Command } from "commander";
import { stringify } from "yaml";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "@turnout/server/node-state";
import { addSourceOptions, familiesOf } from "../options.ts";
import { stateTable, type PrintedState } from "../state-table.ts";
import { DEFAULT_MODE } from "../registry.ts";

interface PrintOptions extends CommonOptions {
  readonly source: string;
  readonly output: "table" | "json" | "yaml" | "jsonl";
  readonly family: string;
  readonly watch?: true;
}

const EXAMPLES = `
Examples:
  turnout print --source file:services.yaml
  turnout print --node-name node1 -o json | jq '.[].rows[].key'
  turnout print --watch -o json        # everything on one line, again after each change
  turnout print --watch -o jsonl       # one line per change set: only what changed, for programs

A change set has: family, revision, full (true: it replaces everything), node (when it changed), set (rows that are new
or changed), delete (keys of rows that are gone). The first of each family is full.`;

/** Add `turnout print`. */
export function addPrint(program: Command, env: Environment): void {
  const command = program
    .command("print")
    .description("show the node state: every service port with its destinations, rules and endpoints");
  addSourceOptions(command);
  command
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json", "yaml", "jsonl"]).default("table"))
    .option("--family <family>", "IPv4, IPv6 or both", "both")
    .option("-w, --watch", "print again after each change");
  addTimeout(command, "give up after this long without a complete state");
  addLogOptions(command);
  addConfigFlags(command, "state");
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: PrintOptions) => {
    await printState(command, options, env);
  });
}

async function printState(command: Command, options: PrintOptions, env: Environment): Promise<void> {
  const families = familiesOf(options.family);
  const loaded = await configFor(command, options, env);
  const log = quietLogFor(options, env);
  const world = env.createWorld(log);
  const config = runConfig(loaded, { name: loaded.mode || DEFAULT_MODE });
  for (const warning of config.warnings) log.warn(warning);
  const state = new NodeStateSource({ source: options.source, tls: apiTls(options), config, env, clock: world.clock, log });
  const first = (signal: AbortSignal): Promise<void> =>
    state.during(async (stop) => {
      const changes = await Promise.all(families.map((family) => state.feed(family).next(stop)));
      if (options.output === "jsonl") env.out(changes.map(changeLine).join(""));
      else env.out(format(changes.map(firstState), options.output, false));
    }, signal);
  if (options.watch === true) await state.during((stop) => follow(state, families, options, env, stop), env.signal);
  else await withTimeout(`source ${options.source}`, timeoutMs(options), world.clock, env.signal, first);
}

function firstState({ family, revision, node, set }: ChangeSet): PrintedState {
  if (node === undefined) throw new Error("the first change set of a feed has the node");
  return { family, revision, node, rows: sorted(set) };
}

function sorted(rows: Iterable<ServicePort>): readonly ServicePort[] {
  return [...rows].toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** Print every family again whenever one of them changes, until aborted. */
async function follow(
  state: NodeStateSource,
  families: readonly IPFamily[],
  options: PrintOptions,
  env: Environment,
  signal: AbortSignal,
): Promise<void> {
  const current = new Map<IPFamily, PrintedState>();
  const followOne = async (family: IPFamily): Promise<void> => {
    const feed = state.feed(family);
    let rows: ReadonlyMap<string, ServicePort> = new Map();
    while (!signal.aborted) {
      const changes = await feed.next(signal);
      if (options.output === "jsonl") {
        env.out(changeLine(changes));
        continue;
      }
      rows = applyChangeSet(rows, changes);
      const node = changes.node ?? current.get(family)?.node;
      if (node === undefined) throw new Error("the first change set of a feed has the node");
      current.set(family, { family, revision: changes.revision, node, rows: sorted(rows.values()) });
      const states = families.flatMap((one) => current.get(one) ?? []);
      if (states.length === families.length) env.out(format(states, options.output, true));
    }
  };
  try {
    await Promise.all(families.map(followOne));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** One change set on one line, without what means something to this process alone. */
function changeLine({ family, revision, full, node, set, delete: gone }: ChangeSet): string {
  return `${JSON.stringify({ family, revision, full, node, set: sorted(set), delete: gone })}\n`;
}

/** Write states; when watching, json is one line and yaml a document each. */
function format(states: readonly PrintedState[], output: Exclude<PrintOptions["output"], "jsonl">, isWatching: boolean): string {
  if (output === "json") return `${JSON.stringify(states, undefined, isWatching ? undefined : 2)}\n`;
  if (output === "yaml") return `${isWatching ? "---\n" : ""}${stringify(states, { aliasDuplicateObjects: false })}`;
  return states.map(stateTable).join("\n") + (isWatching ? "\n" : "");
}

import { objectId } from "../contract/backend.ts";
import type { Backend, BackendModule, Context, KernelObject, Plain, Plan } from "../contract/backend.ts";
import { fitRow } from "../contract/fit-row.ts";
import { openDataplane, probeModule } from "../contract/host-module.ts";
import type { World } from "../contract/world.ts";
import type { IPFamily } from "../model/api-objects.ts";
import { haveManyEndpoints } from "../model/many-endpoints.ts";
import type { ChangeSet, ServicePort } from "../model/rows.ts";

/** What a backend would bring into force on an empty host, one family. */
export interface Rendering {
  readonly backend: string;
  readonly family: IPFamily;
  readonly objects: readonly KernelObject[];
  /** The plan as text. */
  readonly plan: string;
}

/** Rows as a backend's objects, and the plan that makes them on an empty host. */
export interface PlannedRows<K extends KernelObject, S> {
  readonly objects: readonly K[];
  readonly plan: Plan<S>;
  /** The plan as text. */
  readonly text: string;
}

/**
 * Render rows, and plan them for an empty host. Pure.
 * @param rows reduced to what the backend can do, see {@link fitRow}
 */
export function planRows<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  rows: readonly ServicePort[],
  context: Context<H>,
  nowMs: number,
): PlannedRows<K, S> {
  const all = [...backend.skeleton(context), ...rows.flatMap((row) => backend.render(row, context))];
  // Rows may share objects; the ledger would keep one of each.
  const objects = [...new Map(all.map((object) => [objectId(object), object])).values()];
  const plan = backend.plan({ put: objects.map((after) => ({ after })), remove: [], lingering: [], nowMs });
  return { objects, plan, text: backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2) };
}

/**
 * Render one full change set and plan it for an empty host. Reads the host, as far as the backend's probe does, and changes nothing.
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
  const { facts: host, capabilities } = await probeModule(module, parsed, world, signal);
  const dataplane = await openDataplane(module, parsed, world, signal);
  try {
    const rows = set.flatMap((row) => fitRow(row, capabilities).row ?? []);
    const context = { node, host, hasManyEndpoints: haveManyEndpoints(rows) };
    const { objects, text } = planRows(dataplane.family(family), rows, context, world.clock.nowMs());
    return { backend: module.name, family, objects, plan: text };
  } finally {
    await dataplane.close(signal);
  }
}

/** Write a rendering for people: an object a line, then the plan. Pure. */
export function renderingText({ family, objects, plan }: Omit<Rendering, "backend">): string {
  const lines = objects.map(({ kind, key, value }) => `${kind} ${key} = ${JSON.stringify(value)}`);
  return `# ${family}: ${objects.length} objects\n${lines.join("\n")}\n\n# ${family}: the plan for an empty host\n${plan.trimEnd()}\n`;
}

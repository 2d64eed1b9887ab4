import { ProxyError } from "../model/errors.ts";
import type { IPFamily } from "../model/api-objects.ts";
import type { Backend, BackendModule, Dataplane, HostReport, KernelObject } from "./backend.ts";
import { abilitiesOf, abilityFaults, wideningFaults } from "./capabilities.ts";
import type { Abilities } from "./capabilities.ts";
import { demandBackend, demandDataplane, demandOutcome } from "./check-module.ts";
import type { World } from "./world.ts";

/** Work in a module's own world, which is let go of afterwards. @throws what `work` throws. */
export async function withWorldOf<T>(
  module: Pick<BackendModule, "createWorld">,
  base: World,
  work: (world: World) => Promise<T>,
): Promise<T> {
  const own = module.createWorld?.(base);
  try {
    return await work(own ?? base);
  } finally {
    own?.close?.();
  }
}

/** A host as a backend found it, with what holds of the backend there. */
export type ProbedHost<H> = Pick<HostReport<H>, "facts" | "versions" | "problems"> & Abilities;

/**
 * Have a backend look at the host, and work out what it can do here. Reads only.
 * @throws {ProxyError} what the probe fails with; `invalid_object` where it names more than its module, or what isn't allowed.
 */
export async function probeModule<O, H, K extends KernelObject, S>(
  module: BackendModule<O, H, K, S>,
  options: O,
  world: World,
  signal: AbortSignal,
): Promise<ProbedHost<H>> {
  const report = await module.probe(options, world, signal);
  const faults = [...abilityFaults(report), ...wideningFaults(module, report)];
  if (faults.length === 0)
    return { facts: report.facts, versions: report.versions, problems: report.problems, ...abilitiesOf(module, report) };
  throw new ProxyError("invalid_object", `the probe found what can't be: ${faults.join("; ")}`, {
    object: `backend ${module.name}`,
    hint: "a probe takes away what this host lacks, and adds nothing: name it true in the module",
  });
}

/**
 * Open a module's dataplane, checked: each family's backend has what the contract asks for.
 * @throws {ProxyError} what the module fails with. @throws {Error} a defect of the backend, told in one line.
 */
export async function openDataplane<O, H, K extends KernelObject, S>(
  module: BackendModule<O, H, K, S>,
  options: O,
  world: World,
  signal: AbortSignal,
): Promise<Dataplane<H, K, S>> {
  const dataplane = await module.open(options, world, signal);
  demandDataplane(dataplane, module.name);
  return {
    family(family: IPFamily): Backend<H, K, S> {
      const backend = dataplane.family(family);
      demandBackend(backend, module.name);
      return backend;
    },
    close: (stop) => dataplane.close(stop),
  };
}

/**
 * Remove everything of a backend's from the host: as it does so itself, or else whatever it observes.
 * @throws {ProxyError} what it fails with, the first refusal of an object too; `tool_failed` where it can't tell what is there.
 */
export async function cleanUpBackend<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (backend.cleanup !== undefined) return await backend.cleanup(signal);
  const observed = await backend.observe(signal);
  if (observed === undefined) throw new ProxyError("tool_failed", "the backend can't tell what is on the host");
  const { objects } = observed;
  const lingering = observed.lingering.map((object) => ({ object, sinceMs: nowMs }));
  if (objects.size + lingering.length === 0) return;
  const outcome = await backend.apply(backend.plan({ put: [], remove: [...objects.values()], lingering, nowMs }), signal);
  demandOutcome(outcome);
  for (const error of outcome.failed?.values() ?? []) throw error;
}

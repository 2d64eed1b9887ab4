import { ProxyError } from "../model/errors.ts";
import type { IPFamily } from "../model/api-objects.ts";
import type { Backend, BackendModule, Dataplane, HostReport, KernelObject } from "./backend.ts";
import { abilitiesOf, abilityFaults, wideningFaults } from "./capabilities.ts";
import type { Abilities } from "./capabilities.ts";
import { demandBackend, demandDataplane, demandReport } from "./check-module.ts";
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
export type ProbedHost<H> = Required<Pick<HostReport<H>, "facts" | "versions" | "problems" | "warnings">> & Abilities;

/**
 * Have a backend look at the host, and work out what it can do here. Reads only.
 * @throws {ProxyError} what the probe fails with; `invalid_object` where it names more than its module, or what isn't allowed.
 * @throws {Error} a defect of the backend, told in one line.
 */
export async function probeModule<O, H, K extends KernelObject, S>(
  module: BackendModule<O, H, K, S>,
  options: O,
  world: World,
  signal: AbortSignal,
): Promise<ProbedHost<H>> {
  const report = await module.probe(options, world, signal);
  demandReport(report, module.name);
  const faults = [...abilityFaults(report), ...wideningFaults(module, report)];
  const { facts, versions, problems, warnings = [] } = report;
  if (faults.length === 0) return { facts, versions, problems, warnings, ...abilitiesOf(module, report) };
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
      acceptFormerName(backend, module.name, world);
      demandBackend(backend, module.name);
      return backend;
    },
    close: (stop) => dataplane.close(stop),
  };
}

/** `reportsDrift` was called `tellsDrift`: for one release the former name counts, with a warning. */
function acceptFormerName(backend: { readonly reportsDrift?: boolean; readonly tellsDrift?: boolean }, name: string, { log }: World): void {
  if (backend.tellsDrift === undefined || backend.reportsDrift !== undefined) return;
  log.warn(`backend ${name}: tellsDrift is called reportsDrift now; the former name is ignored from the next release on`);
  Object.defineProperty(backend, "reportsDrift", { get: () => backend.tellsDrift });
}

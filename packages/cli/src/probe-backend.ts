import { probeModule, ProxyError, withWorldOf, type BackendModule, type Plain, type World } from "@turnout/core";

/** Whether this host can run a backend. */
export interface BackendHealth {
  readonly backend: string;
  /** Why it can't, as one line each; empty: it can. */
  readonly problems: readonly string[];
  /** What is wrong here although it can run, as one line each. */
  readonly warnings: readonly string[];
  /** What it can't do of what Services ask for, here or anywhere. */
  readonly lacks: readonly string[];
  /** Of the kernel and of the tools it uses. */
  readonly versions: Readonly<Record<string, string>>;
}

/** Have a backend look at this host; what its probe fails with is a problem, too. @throws {ProxyError} `canceled`. */
export async function probeBackend(
  module: BackendModule,
  options: Readonly<Record<string, Plain>>,
  world: World,
  signal: AbortSignal,
): Promise<BackendHealth> {
  try {
    const parsed = module.parseOptions(options);
    const host = await withWorldOf(module, world, (own) => probeModule(module, parsed, own, signal));
    const lacks = Object.entries(host.capabilities).flatMap(([name, can]) => (can === true ? [] : [name]));
    const [problems, warnings] = [host.problems, host.warnings].map((errors) => errors.map(({ message }) => message)) as [
      string[],
      string[],
    ];
    return { backend: module.name, problems, warnings, lacks, versions: host.versions };
  } catch (error) {
    if (signal.aborted || !ProxyError.is(error)) throw error;
    return { backend: module.name, problems: [error.message], warnings: [], lacks: [], versions: {} };
  }
}

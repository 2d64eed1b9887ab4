import { IPVS_MODULES } from "./modules.ts";
import { nodeCommand, runInVm } from "./run-in-vm.ts";

/** A guest is slow, and has one CPU: all moves between proxies take the longest. */
const TIMEOUT_MS = 3 * 3_600_000;
/** A process of Node for each place of a cluster. */
const MEMORY_MIB = 2_048;

/** What a program needs of the host besides. */
export interface VmNeeds {
  /** Variables of the environment that it gets, too. */
  readonly variables?: readonly string[];
  /** It is seen in the guest, which has a /tmp of its own. */
  readonly folder?: string | undefined;
}

/**
 * Run a program of Node again, with `--in-vm` behind its arguments, in a guest where there is a kernel with IPVS. What it prints is printed here.
 *
 * Shape: its exit code.
 * @throws {VmError} as {@link runInVm}.
 */
export async function playInVm(program: URL, args: readonly string[], { variables = [], folder }: VmNeeds = {}): Promise<number> {
  const env = variables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
  const { code } = await runInVm({
    command: nodeCommand(program, [...args, "--in-vm"], "built"),
    modules: IPVS_MODULES,
    ...(folder === undefined ? {} : { folder }),
    memoryMiB: MEMORY_MIB,
    timeoutMs: TIMEOUT_MS,
    env: Object.fromEntries(env),
    onStdout: (text) => process.stdout.write(text),
    onStderr: (text) => process.stderr.write(text),
  });
  return code;
}

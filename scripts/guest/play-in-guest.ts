import { IPVS_MODULES } from "./modules.ts";
import { nodeCommand, runInGuest } from "./run-in-guest.ts";

/** A guest is slow, and has one CPU. */
const TIMEOUT_MS = 7_200_000;
/** A process of Node for each place of a cluster. */
const MEMORY_MIB = 2_048;

/**
 * Run a program of Node again, with `--in-guest` behind its arguments, in a guest where there is a kernel with IPVS. What it prints is printed here.
 *
 * Shape: its exit code. `variables` are those of the environment that it gets, too.
 * @throws {GuestError} as {@link runInGuest}.
 */
export async function playInGuest(program: URL, args: readonly string[], variables: readonly string[] = []): Promise<number> {
  const env = variables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
  const { code } = await runInGuest({
    command: nodeCommand(program, [...args, "--in-guest"], "built"),
    modules: IPVS_MODULES,
    memoryMiB: MEMORY_MIB,
    timeoutMs: TIMEOUT_MS,
    env: Object.fromEntries(env),
    onStdout: (text) => process.stdout.write(text),
    onStderr: (text) => process.stderr.write(text),
  });
  return code;
}

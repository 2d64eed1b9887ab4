import { IPVS_MODULES, nodeCommand, runInGuest } from "@turnout/house/guest";

/** A guest is slow, and has one CPU. */
const TIMEOUT_MS = 3_600_000;
const MEMORY_MIB = 2_048;

/** Run one of this folder's programs again in a guest, where there is a kernel with IPVS; gives its exit code. */
export async function playInGuest(program: URL, args: readonly string[]): Promise<number> {
  const log = process.env["TURNOUT_HEALING_LOG"];
  const { code } = await runInGuest({
    command: nodeCommand(program, [...args, "--in-guest"], "built"),
    modules: IPVS_MODULES,
    memoryMiB: MEMORY_MIB,
    timeoutMs: TIMEOUT_MS,
    env: log === undefined ? {} : { TURNOUT_HEALING_LOG: log },
    onStdout: (text) => process.stdout.write(text),
    onStderr: (text) => process.stderr.write(text),
  });
  return code;
}

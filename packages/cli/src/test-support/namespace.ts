import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** What a script left. */
export interface ScriptOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
/** How a program is started from its sources. */
export const FROM_SOURCES: string = `${process.execPath} --conditions=@turnout/source --disable-warning=ExperimentalWarning`;

/**
 * Run a shell script in a fresh network namespace and a fresh mount namespace, which end with it, and in a folder with these files; `$T` is
 * turnout from its sources, `$N` node.
 *
 * @param flags more of unshare's
 */
export async function scriptInNamespace(
  files: Readonly<Record<string, string>>,
  script: string,
  flags: readonly string[] = [],
): Promise<ScriptOutcome> {
  const cwd = await mkdtemp(join(tmpdir(), "turnout-cli-"));
  const text = `ip link set lo up; ip address add 172.18.0.1/24 dev lo; N='${process.execPath}'; T='${FROM_SOURCES} ${MAIN}'\n${script}`;
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(cwd, name), content);
    const { stdout, stderr } = await promisify(execFile)("unshare", ["-n", "-m", ...flags, "sh", "-c", text], { timeout: 120_000, cwd });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { readonly code?: unknown; readonly stdout: string; readonly stderr: string };
    return { code: typeof code === "number" ? code : -1, out: stdout, err: stderr };
  } finally {
    await rm(cwd, { recursive: true });
  }
}

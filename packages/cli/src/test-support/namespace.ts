import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What a script left. */
export interface ScriptOutcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

/** Run a shell script in a fresh network namespace and a fresh mount namespace, which end with it; `$T` is turnout from its sources, `$N` node. */
export function scriptInNamespace(directory: string, script: string): Promise<ScriptOutcome> {
  const node = `${process.execPath} --conditions=@turnout/source --disable-warning=ExperimentalWarning`;
  const text = `ip link set lo up; ip address add 172.18.0.1/24 dev lo; N='${process.execPath}'; T='${node} ${MAIN}'\n${script}`;
  return new Promise((resolve) => {
    execFile("unshare", ["-n", "-m", "sh", "-c", text], { timeout: 120_000, cwd: directory }, (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1, out, err });
    });
  });
}

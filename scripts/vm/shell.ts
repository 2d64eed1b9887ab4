import { spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/** Run a script of the shell that must succeed, and give what it prints. */
export function sh(script: string): string {
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", script], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${script}: ${stderr}`);
  return stdout.trim();
}

/** What a program prints, line by line, as it is asked for. */
export function linesOf({ stdout }: ChildProcess): () => Promise<string> {
  if (stdout === null) throw new Error("no stdout");
  let buffered = "";
  return async () => {
    while (!buffered.includes("\n")) {
      const [chunk] = (await once(stdout, "data")) as [Buffer];
      buffered += chunk.toString();
    }
    const at = buffered.indexOf("\n");
    const line = buffered.slice(0, at);
    buffered = buffered.slice(at + 1);
    return line;
  };
}

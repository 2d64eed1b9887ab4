import { execFileSync } from "node:child_process";

/** Run a program; what it prints. @throws {Error} when it fails. */
export function tool(file: string, ...args: readonly string[]): string {
  return toolWith("", file, ...args);
}

/** {@link tool} with input. */
export function toolWith(input: string, file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, LC_ALL: "C" } });
}

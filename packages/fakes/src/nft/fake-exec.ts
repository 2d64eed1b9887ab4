import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult } from "@turnout/core";
import { startedLater } from "@turnout/host/testing";

const VERSION = "nftables v1.0.6 (Lester Gooch #5)\n";
const KILLED = 137;

/** What one input came to. */
export interface NftResult {
  readonly isDone: boolean;
  readonly stderr: string;
  /** Tables that were changed; empty when nothing was. */
  readonly changed: readonly string[];
}

/** Runs an input, which whoever reads no text gets as data: nft's answer, or nft is killed before or after it did its work. */
export type RunInput = (data: unknown) => NftResult | "killed";

/**
 * The programs of the host: there is nft, under whatever path, and nothing else.
 *
 * Shape: `nft -f -` as the backends call it, `nft -c -f -` and `nft --version`.
 */
export function createNftExec(runInput: RunInput): Exec {
  const run = (file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> =>
    new Promise((resolve) => resolve(runOnce(file, args, options, runInput)));
  return { run, open: (file, args) => startedLater(run, file, args) };
}

function runOnce(file: string, args: readonly string[], options: ExecOptions, runInput: RunInput): ExecResult {
  if (options.signal?.aborted === true) throw new ProxyError("canceled", "the command was given up", { object: [file, ...args].join(" ") });
  if (!isNft(file)) throw missing(file, args);
  if (args.join(" ") === "--version") return { code: 0, stdout: VERSION, stderr: "" };
  // What is only checked changes nothing.
  if (args.join(" ") === "-c -f -") return { code: 0, stdout: "", stderr: "" };
  if (args.join(" ") !== "-f -") return { code: 1, stdout: "", stderr: "Error: the fake lists nothing\n" };
  const answer = runInput(options.data);
  if (answer === "killed") return { code: KILLED, stdout: "", stderr: "" };
  return { code: answer.isDone ? 0 : 1, stdout: "", stderr: answer.stderr };
}

function isNft(file: string): boolean {
  return file === "nft" || file.endsWith("/nft");
}

function missing(file: string, args: readonly string[]): ProxyError {
  return new ProxyError("tool_missing", `${file} is not installed`, { object: [file, ...args].join(" ") });
}

import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult } from "@turnout/core";
import { startedLater } from "../started-later.ts";
import type { NftResult } from "./nft-engine.ts";

const VERSION = "nftables v1.0.6 (Lester Gooch #5)\n";
const KILLED = 137;

/** What comes of running an input: nft's answer, or nft is killed before or after it did its work. */
export type RunInput = (text: string, file: string) => NftResult | "killed";

/**
 * The programs of the host: there is nft, under whatever path, and nothing else.
 *
 * Shape: `nft -f -` and `nft -j list …` as the backend calls them, and `nft --version`.
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
  const isFile = args.join(" ") === "-f -";
  const isJson = args[0] === "-j";
  // Listing is understood as JSON alone.
  if (!isFile && !isJson && args.some((arg) => arg === "list")) return { code: 1, stdout: "", stderr: "Error: the fake lists JSON only\n" };
  const text = isFile ? (options.input ?? "") : `${args.slice(isJson ? 1 : 0).join(" ")}\n`;
  const answer = runInput(text, isFile ? "/dev/stdin" : "");
  if (answer === "killed") return { code: KILLED, stdout: "", stderr: "" };
  return { code: answer.isDone ? 0 : 1, stdout: answer.stdout, stderr: answer.stderr };
}

function isNft(file: string): boolean {
  return file === "nft" || file.endsWith("/nft");
}

function missing(file: string, args: readonly string[]): ProxyError {
  return new ProxyError("tool_missing", `${file} is not installed`, { object: [file, ...args].join(" ") });
}

import { ProxyError } from "@turnout/core";
import type { Exec, ExecOptions, ExecResult, ExecSession } from "@turnout/core";
import type { NftResult } from "./nft-engine.ts";

const VERSION = "nftables v1.0.6 (Lester Gooch #5)\n";
const KILLED = 137;

/** What comes of running an input: nft's answer, or nft is killed before or after it did its work. */
export type RunInput = (text: string, file: string) => NftResult | "killed";

/**
 * The programs of the host: there is nft, under whatever path, and nothing else.
 *
 * Shape: `nft -f -`, `nft -i` and `nft -j list …` as the backend calls them, and `nft --version`.
 */
export function createNftExec(runInput: RunInput): Exec {
  return {
    run: (file, args, options) => new Promise((resolve) => resolve(runOnce(file, args, options ?? {}, runInput))),
    open(file: string, args: readonly string[]): ExecSession {
      return new NftSessionFake(isNft(file) && args.join(" ") === "-i" ? undefined : missing(file, args), runInput);
    },
  };
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

/** A kept `nft -i`: each line is an input of its own. */
class NftSessionFake implements ExecSession {
  readonly pid = 4_242;
  readonly #runInput: RunInput;
  #unread = "";
  #partial = "";
  #ended: ProxyError | undefined;

  constructor(ended: ProxyError | undefined, runInput: RunInput) {
    this.#ended = ended;
    this.#runInput = runInput;
  }

  write(text: string): void {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop() ?? "";
    for (const line of lines) {
      if (this.#ended !== undefined) return;
      const answer = this.#runInput(`${line}\n`, "");
      if (answer === "killed") this.#ended = new ProxyError("tool_failed", "the child ended (SIGKILL)", { object: "nft -i" });
      else this.#unread += answer.stdout + answer.stderr;
    }
  }

  readUntil(marker: string, timeoutMs: number): Promise<string> {
    const at = this.#unread.indexOf(marker);
    if (at >= 0) {
      const text = this.#unread.slice(0, at + marker.length);
      this.#unread = this.#unread.slice(text.length);
      return Promise.resolve(text);
    }
    // Answers are there at once: what isn't there will never come.
    return Promise.reject(this.#ended ?? new ProxyError("timed_out", `no answer within ${timeoutMs} ms`, { object: "nft -i" }));
  }

  close(): void {
    this.#ended ??= new ProxyError("canceled", "the session was closed", { object: "nft -i" });
  }
}

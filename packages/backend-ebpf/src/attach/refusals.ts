import { ProxyError } from "@turnout/core/backend";
import { verifierLogOf } from "@turnout/host/bpf";
import type { ProgramFile } from "../hooks.ts";
import type { EbpfWorld } from "../world.ts";

/**
 * Programs that the kernel's verifier refuses: an error has its last words, and the file that the option `verifier-log` names has all.
 *
 * Shape: the file has the newest refusal of each object file, and is written anew with each.
 */
export class Refusals {
  readonly #path: string | undefined;
  readonly #world: Pick<EbpfWorld, "writeText">;
  readonly #texts = new Map<ProgramFile, string>();

  constructor(path: string | undefined, world: Pick<EbpfWorld, "writeText">) {
    this.#path = path;
    this.#world = world;
  }

  /** Note what loading a file failed with; gives the error with a hint where all is. What isn't the verifier's is given back as it is. */
  noted(file: ProgramFile, error: unknown): unknown {
    const log = verifierLogOf(error);
    if (!ProxyError.is(error) || log === undefined) return error;
    const { code, what, object, hint } = error;
    this.#texts.set(file, `# ${error.message}\n${log.trimEnd()}\n`);
    const hints = [hint, this.#write()].filter((text) => text !== undefined).join("; ");
    return new ProxyError(code, what, { ...(object === undefined ? {} : { object }), hint: hints, cause: error.cause });
  }

  /** Says where the log is, or how to get it. */
  #write(): string {
    if (this.#path === undefined) return "option verifier-log=/path/of/a/file keeps the verifier's whole log";
    try {
      this.#world.writeText(this.#path, [...this.#texts.values()].join("\n"));
      return `the verifier's whole log is in ${this.#path}`;
    } catch (error) {
      return `the verifier's whole log could not be written: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}

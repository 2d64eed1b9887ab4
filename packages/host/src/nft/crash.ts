import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";
import { isCrash } from "../exec/exec-errors.ts";
import { nftVersion } from "../facts/probes.ts";

/** A chain and a rule: for a rule nft reads the sets of all tables. It is only checked, so nothing is changed, and no one is notified. */
const TRIAL = ["add table ip turnout-trial", "add chain ip turnout-trial trial", "add rule ip turnout-trial trial accept", ""].join("\n");

/** Describe that nft crashed, by the signal that ended it. Asks for its version. @throws {ProxyError} `canceled`. */
export async function nftCrash(exec: Exec, nft: string, by: string, signal: AbortSignal): Promise<ProxyError> {
  const version = await nftVersion(exec, signal, nft);
  return new ProxyError("tool_failed", `nft ${version?.text ?? "of unknown version"} crashes on this host (${by})`, {
    object: "a newer nft made a set or map that it can't read",
    hint: "install nft 1.1 or newer, or use Turnout's image",
  });
}

/**
 * Try a write that changes nothing; resolves to why nft crashes on this host, undefined: it does not.
 * @throws {ProxyError} `timed_out`, `canceled`, and what starting nft fails with.
 */
export async function tryNftWrite(exec: Exec, nft: string, signal: AbortSignal): Promise<ProxyError | undefined> {
  const { signal: by } = await exec.run(nft, ["-c", "-f", "-"], { input: TRIAL, signal });
  return by !== undefined && isCrash(by) ? await nftCrash(exec, nft, by, signal) : undefined;
}

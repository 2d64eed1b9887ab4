import { FAMILIES, ProxyError } from "@turnout/core";
import type { Exec, ExecResult, IPFamily } from "@turnout/core";
import { isCrash } from "../exec/exec-errors.ts";
import { nftVersion } from "../facts/probes.ts";

/** Describe that nft crashed, by the signal that ended it. Asks for its version. @throws {ProxyError} `canceled`. */
export async function nftCrash(exec: Exec, nft: string, by: string, signal: AbortSignal): Promise<ProxyError> {
  const version = await nftVersion(exec, signal, nft);
  return new ProxyError("tool_failed", `nft ${version?.text ?? "of unknown version"} crashes on this host (${by})`, {
    object: "a newer nft made a set or map that it can't read",
    hint: "install nft 1.1 or newer, or use Turnout's image",
  });
}

/** What a write that changes nothing showed of this host. */
interface NftTrial {
  /** Why nft crashes here; undefined: it does not. */
  readonly crash: ProxyError | undefined;
  /** Why a family can't be done here; absent: it can. */
  readonly lacks: Readonly<Partial<Record<IPFamily, string>>>;
}

/**
 * Try a write that changes nothing, of all families at once and where that fails of each.
 * @throws {ProxyError} `timed_out`, `canceled`, and what starting nft fails with.
 */
export async function tryNftWrite(exec: Exec, nft: string, signal: AbortSignal): Promise<NftTrial> {
  const attempt = (families: readonly IPFamily[]): Promise<ExecResult> =>
    exec.run(nft, ["-c", "-f", "-"], { input: families.map(trialOf).join(""), signal });
  const { code, signal: by } = await attempt(FAMILIES);
  if (by !== undefined && isCrash(by)) return { crash: await nftCrash(exec, nft, by, signal), lacks: {} };
  const lacks: Partial<Record<IPFamily, string>> = {};
  for (const family of code === 0 ? [] : FAMILIES) {
    const result = await attempt([family]);
    if (result.code !== 0) lacks[family] = `nft can't make its rules here (${result.stderr.split("\n", 1)[0]?.trim() ?? ""})`;
  }
  return { crash: undefined, lacks };
}

/** A chain of nat and a rule: for a rule nft reads the sets of all tables. It is only checked, so nothing is changed, and no one is notified. */
function trialOf(family: IPFamily): string {
  const chain = `${family === "IPv4" ? "ip" : "ip6"} turnout-trial`;
  const lines = [
    `add table ${chain}`,
    `add chain ${chain} trial { type nat hook prerouting priority -100; }`,
    `add rule ${chain} trial accept`,
  ];
  return `${lines.join("\n")}\n`;
}

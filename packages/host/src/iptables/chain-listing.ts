import type { Exec, ExecOptions } from "@turnout/core";

/** A chain of a table. */
export interface ChainPlace {
  /** E.g. `nat`. */
  readonly table: string;
  /** E.g. `KUBE-SERVICES`. */
  readonly chain: string;
}

/** What a program of iptables is run with to list chains. */
export interface ChainListing {
  readonly exec: Exec;
  /** E.g. `iptables-nft-restore`. */
  readonly restore: string;
  readonly options: Pick<ExecOptions, "signal" | "timeoutMs">;
}

/** The tool takes lines apart at blanks and quotes. */
const PLAIN_NAME = /^[^\s"'\\-][^\s"'\\]*$/;
const HEAD = /^-[NP] (\S+)/;

/**
 * List chains of any tables in one run: what `iptables -S CHAIN` prints of each, in the order in which they are asked for.
 *
 * Shape: `iptables-restore` takes `-S` in its input, and hands nothing to the kernel where no other line is. Whatever is asked for, a run of the legacy variant
 * reads the whole table; and to start one takes a large process some milliseconds.
 * Edges: undefined where not all could be listed, e.g. because one of them isn't there: then nothing is said of the others either.
 * @throws {ProxyError} what `Exec.run` throws.
 * @source iptables 1.8.9 iptables/iptables-restore.c, iptables/xtables-restore.c; `real-iptables.test.ts` of the iptables backend
 */
export async function listChains(
  places: readonly ChainPlace[],
  { exec, restore, options }: ChainListing,
): Promise<readonly string[] | undefined> {
  if (places.length === 0) return [];
  if (!places.every(({ chain }) => PLAIN_NAME.test(chain))) return undefined;
  const byTable = Map.groupBy(places, ({ table }) => table);
  const input = [...byTable].map(([table, chains]) => `*${table}\n${chains.map(({ chain }) => `-S ${chain}\n`).join("")}COMMIT\n`).join("");
  const { code, stdout } = await exec.run(restore, ["-w", LOCK_SECONDS, "--noflush"], { ...options, input });
  const listed = code === 0 ? cutChains(stdout) : [];
  const asked = [...byTable.values()].flat();
  const isWhole = listed.length === asked.length && asked.every(({ chain }, index) => HEAD.exec(listed[index] ?? "")?.[1] === chain);
  if (!isWhole) return undefined;
  const texts = new Map(asked.map((place, index) => [place, listed[index] ?? ""]));
  return places.map((place) => texts.get(place) ?? "");
}

/** So long the legacy variant waits for the xtables lock. */
const LOCK_SECONDS = "2";

/** Each chain begins with a line of its own. */
function cutChains(text: string): readonly string[] {
  return text.split(/^(?=-[NP] )/m).filter((part) => HEAD.test(part));
}

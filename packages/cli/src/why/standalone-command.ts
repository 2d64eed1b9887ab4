/** What was asked, as it was typed. */
export interface AskedWords {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly in?: string;
}

/** Flags of a proxy that say nothing of what it computes. */
const OF_LOGS: ReadonlySet<string> = new Set(["v", "logging-format"]);

/**
 * Write the whole command that asks about a packet without the proxy. Pure.
 *
 * Shape: `proxy` is what the proxy was started with; of that the command gets what it takes, too, so that it compares with the same flags. Undefined:
 * nobody knows, and SOURCE and NODE stand for what has to be filled in. `known` are the names of flags that `turnout why` takes.
 */
export function standaloneCommand(asked: AskedWords, proxy: readonly string[] | undefined, known: readonly string[]): string {
  const { from, to, protocol, in: device } = asked;
  const words = ["turnout", "why", from, to];
  if (protocol.toLowerCase() !== "tcp") words.push("--protocol", protocol);
  if (device !== undefined) words.push("--in", device);
  const flags = proxy === undefined ? ["--source", "SOURCE", "--node-name", "NODE"] : sharedFlags(proxy, new Set(known));
  return [...words, ...flags].map(quoted).join(" ");
}

function sharedFlags(args: readonly string[], known: ReadonlySet<string>): readonly string[] {
  const shared: string[] = [];
  for (const [index, word] of args.entries()) {
    const [, name = "", value] = /^--([\w-]+)(?:=(.*))?$/.exec(word) ?? [];
    if (!known.has(name) || OF_LOGS.has(name)) continue;
    const next = args[index + 1];
    if (value !== undefined || next === undefined || next.startsWith("-")) shared.push(word);
    else shared.push(word, next);
  }
  // Where nobody says, a proxy reads from the API server; to be said here, or the proxy itself is asked.
  return shared.some((word) => /^--source(?:=|$)/.test(word)) ? shared : ["--source", "kube", ...shared];
}

/** A word of a shell's command line. */
function quoted(word: string): string {
  return /^[\w@%+=:,./[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

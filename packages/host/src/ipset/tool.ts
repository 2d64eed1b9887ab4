import { ProxyError } from "@turnout/core";
import type { Exec, ErrorCode } from "@turnout/core";
import { readSaved } from "./text/saved.ts";
import type { SavedSet } from "./text/saved.ts";

/** What a complaint means, in the order in which they are looked for. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/Operation not permitted/, "permission_denied", "run as root, or with CAP_NET_ADMIN"],
  [
    /Cannot open session to kernel|typename '.*' is unknown|set type not supported/,
    "host_unsupported",
    "this kernel or tool lacks a type of sets, or all of them: modprobe ip_set",
  ],
  [/does not exist|it's not added/, "not_found", "another program removed it; it is compared and repaired"],
  [/same name already exists/, "already_exists", "a set of other type or options has the name"],
  [/Hash is full/, "limit_reached", "the set has as many entries as it may have (maxelem)"],
  [/in use by a kernel component/, "tool_failed", "a rule or another set still names it"],
  [/CIDR parameter|Null-valued element|type does not match|Invalid argument/, "invalid_object", "no set of this type takes it"],
];

/** Complaints that are of no single line. */
const OF_ALL = /^(?:Cannot open session|Kernel error received: Operation not permitted)/;
/** Complaints of the tool before it has asked the kernel for anything that the line wants. */
const OF_TOOL = /^(?:Syntax error|The set with the given name does not exist)/;

/** A line that `ipset restore` stopped at; none after it was carried out. */
export interface RefusedLine {
  /** From 1. */
  readonly number: number;
  readonly said: string;
  /**
   * Whether all lines before it are in force. The tool collects what it adds to (or takes out of) one set and hands it over together. When it
   * stumbles over a line itself, it forgets what it had collected.
   */
  readonly isAfterAll: boolean;
}

/** Read which line `ipset restore` stopped at; undefined when it didn't say, or when the fault is no line's. */
export function refusedLine(stderr: string): RefusedLine | undefined {
  const [, number, said = ""] = /^ipset v[\d.]+: Error in line (\d+): (.*)/m.exec(stderr) ?? [];
  return number === undefined || OF_ALL.test(said) ? undefined : { number: Number(number), said, isAfterAll: !OF_TOOL.test(said) };
}

/** Turn what ipset printed into an error. */
export function ipsetError(stderr: string, doing: string, line?: string): ProxyError {
  const said = stderr
    .split("\n")
    .map((text) => text.replace(/^ipset v[\d.]+: /, "").trim())
    .filter((text) => text !== "" && !text.startsWith("Try `"))
    .join("; ");
  const object = `${said === "" ? "no message" : said.slice(0, 300)}${line === undefined ? "" : ` (${line.slice(0, 300)})`}`;
  const found = MEANINGS.find(([pattern]) => pattern.test(said));
  return new ProxyError(found?.[1] ?? "tool_failed", `ipset could not ${doing}`, {
    object,
    ...(found === undefined ? {} : { hint: found[2] }),
  });
}

/** Before it sets had no families as they have now. @source kube-proxy pkg/proxy/ipvs MinIPSetCheckVersion */
const OLDEST_MAJOR = 6;
const RUN_TIMEOUT_MS = 600_000;
/** Each refused line costs a start of the tool; after so many of one set nobody learns from more. */
const REFUSALS_MAX = 100;

/** The program `ipset`. */
export class IpsetTool {
  readonly #exec: Exec;

  constructor(exec: Exec) {
    this.#exec = exec;
  }

  /** The tool's version, e.g. `7.17`. @throws {ProxyError} `tool_missing`, `host_unsupported` for one before 6.0 and where the kernel has no sets. */
  async version(signal: AbortSignal): Promise<string> {
    const { code, stdout, stderr } = await this.#exec.run("ipset", ["version"], { signal });
    if (code !== 0) throw ipsetError(stderr, "be used");
    const version = /\bv(\d+(?:\.\d+)+)/.exec(stdout)?.[1];
    if (version === undefined) throw new ProxyError("tool_failed", "ipset doesn't say its version", { object: stdout.slice(0, 100) });
    if (Number.parseInt(version, 10) >= OLDEST_MAJOR) return version;
    throw new ProxyError("host_unsupported", "ipset is too old", {
      object: `version ${version}`,
      hint: `install ${OLDEST_MAJOR}.0 or newer`,
    });
  }

  /** The names of all sets of the host, whoever's. @throws {ProxyError} what ipset complains about. */
  async names(signal: AbortSignal): Promise<readonly string[]> {
    const { code, stdout, stderr } = await this.#exec.run("ipset", ["list", "-name"], { signal });
    if (code !== 0) throw ipsetError(stderr, "list the names of sets");
    return stdout.split("\n").filter((name) => name !== "");
  }

  /** Read those of some sets that are there, by name; no others are looked at. @throws {ProxyError} what ipset complains about. */
  async save(wanted: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, SavedSet>> {
    const there = new Set(await this.names(signal));
    const names = wanted.filter((name) => there.has(name));
    if (names.length === 0) return new Map();
    // One start of the tool for all of them.
    const input = names.map((name) => `save ${name}\n`).join("");
    const { code, stdout, stderr } = await this.#exec.run("ipset", ["restore"], { input, signal, timeoutMs: RUN_TIMEOUT_MS });
    if (code !== 0) throw ipsetError(stderr, "list sets");
    return readSaved(stdout);
  }

  /**
   * Carry out lines in order and say what became of each: undefined, or why the kernel refused it. One that is refused stops no other.
   *
   * Shape: lines as of `@turnout/host/ipset/text`. What is there already is no fault (`-exist`): an entry that is added again, one that is taken
   * out and wasn't in, a set that is made again with the same type and options. Others' families aren't compared by the kernel: look first.
   * Edges: nothing is atomic: lines take effect one by one. After a hundred refusals of lines of one set, its others are not tried and have `limit_reached`.
   * @throws {ProxyError} when the tool itself fails, or says of no line that it doesn't understand it; which lines are in force isn't known then.
   */
  async restore(lines: readonly string[], signal: AbortSignal): Promise<readonly (ProxyError | undefined)[]> {
    const outcomes = new Array<ProxyError | undefined>(lines.length).fill(undefined);
    let left = lines.map((line, at) => ({ line, at }));
    const refusals = new Map<string, number>();
    while (left.length > 0) {
      const input = left.map(({ line }) => `${line}\n`).join("");
      const { code, stderr } = await this.#exec.run("ipset", ["restore", "-exist"], { input, signal, timeoutMs: RUN_TIMEOUT_MS });
      if (code === 0) break;
      const refused = refusedLine(stderr);
      const place = (refused?.number ?? 0) - 1;
      const bad = left[place];
      if (refused === undefined || bad === undefined) throw ipsetError(stderr, "apply a change");
      outcomes[bad.at] = ipsetError(refused.said, "apply a line", bad.line);
      // What may have been forgotten is given once more; nobody minds what is there already.
      const again = refused.isAfterAll ? [] : left.slice(startOfGroup(left, place), place);
      left = [...again, ...left.slice(place + 1)];
      const count = (refusals.get(setOf(bad.line)) ?? 0) + 1;
      refusals.set(setOf(bad.line), count);
      if (count < REFUSALS_MAX) continue;
      const error = new ProxyError("limit_reached", `ipset refused ${REFUSALS_MAX} lines of this set before this one`);
      const isSpoilt = ({ line }: { readonly line: string }): boolean => setOf(line) === setOf(bad.line);
      for (const { at } of left.filter(isSpoilt)) outcomes[at] = error;
      left = left.filter((one) => !isSpoilt(one));
    }
    return outcomes;
  }
}

/** The set that a line is about. */
function setOf(line: string): string {
  return line.split(" ", 2)[1] ?? "";
}

/** Where the lines before `end` begin that the tool hands over together: of one verb and set. */
function startOfGroup(lines: readonly { readonly line: string }[], end: number): number {
  const groupAt = (index: number): string | undefined => lines[index]?.line.split(" ", 2).join(" ");
  let start = end;
  while (start > 0 && groupAt(start - 1) === groupAt(end - 1)) start--;
  return start;
}

import { ProxyError, type Log, type Rights } from "@turnout/core";
import type { HostFiles } from "./host-files.ts";
import type { ProcessMemory } from "./process-memory.ts";

/** What becomes of this process's capabilities. */
interface RightsChoice {
  /** In this process. */
  readonly process: readonly string[];
  /** In programs that it starts. */
  readonly children: readonly string[];
  /** Needed by the backend and not there, with what that means. */
  readonly lacking: readonly string[];
  /** Of no use to the backend, and missed in looking for rules of former proxies. */
  readonly lackingMeanwhile: readonly string[];
}

/** What the process around a backend needs. Nobody misses it who has no port below 1024. */
const OWN: Rights = { CAP_NET_BIND_SERVICE: "answer health checks and metrics on ports below 1024" };

/**
 * Choose which Linux capabilities to keep. Pure.
 *
 * Shape: `backend` is what the backend needs, `meanwhile` what looking for rules of former proxies takes, `files` why this process has to pass
 * over the permissions of files, if it has to.
 */
function chooseRights(held: readonly string[], backend: Rights, meanwhile: Rights, files: readonly string[]): RightsChoice {
  const has = new Set(held);
  const forFiles = files.length === 0 ? [] : [FILE_RIGHT];
  const children = [...new Set([...Object.keys(backend), ...Object.keys(meanwhile)])].filter((name) => has.has(name));
  const process = [...new Set([...children, ...Object.keys(OWN), ...forFiles])].filter((name) => has.has(name));
  const missing = (rights: Rights, others: Rights): readonly string[] =>
    Object.entries(rights).flatMap(([name, what]) => (has.has(name) || name in others ? [] : [`${name} (to ${what})`]));
  return {
    process: process.toSorted(),
    children: children.toSorted(),
    lacking: missing(backend, {}),
    lackingMeanwhile: missing(meanwhile, backend),
  };
}

/** Lets root use files that belong to others. */
const FILE_RIGHT = "CAP_DAC_OVERRIDE";

/** What a process may do as Linux capabilities, by name, e.g. `CAP_NET_ADMIN`. `createProcessRights` of `@turnout/host` is the real one. */
export interface ProcessRights {
  /** What it has. */
  held(): readonly string[];
  /** Call `look` with some of them out of force. */
  without<T>(names: readonly string[], look: () => T): T;
  /** Give up all but these for good: in this process, and in programs that it starts. @throws {ProxyError} when that can't be done. */
  keep(process: readonly string[], children: readonly string[]): Promise<void>;
}

/** What this process has of the host it runs on, besides what a backend touches. */
export interface HostAccess {
  readonly files: HostFiles;
  /** Undefined: all rights are kept. */
  readonly rights?: ProcessRights;
  /** Files and sockets that this process opens again and again. */
  readonly paths: readonly string[];
  /** Undefined: nobody gives memory back before V8 does. */
  readonly memory?: ProcessMemory | undefined;
}

/** Which rights there are to give up. */
export interface RightsOptions extends Required<Omit<HostAccess, "memory">> {
  /** What the backend needs; undefined: it doesn't say, so nothing is given up. */
  readonly backend: Rights | undefined;
  /** What is needed besides until rules of former proxies are gone. */
  readonly meanwhile: Rights;
  readonly log: Log;
}

/**
 * Give up the capabilities that nobody here needs, and say which are kept and which are missing.
 *
 * Shape: resolves to the second half: what to call when rules of former proxies are gone.
 * Edges: what can't be given up is told, and the process goes on.
 */
export async function giveUpRights(options: RightsOptions): Promise<() => Promise<void>> {
  const { rights, backend, log } = options;
  if (backend === undefined) {
    log.info("all capabilities are kept: the backend does not say which it needs");
    return () => Promise.resolve();
  }
  const held = rights.held();
  // Before anything is given up: what this process may not open then, it may not open ever again.
  const others = held.includes(FILE_RIGHT) ? rights.without([FILE_RIGHT, "CAP_DAC_READ_SEARCH"], () => closedPaths(options)) : [];
  const first = chooseRights(held, backend, options.meanwhile, others);
  const last = chooseRights(held, backend, {}, others);
  const meanwhile = first.process.filter((name) => !last.process.includes(name));
  const isDone = held.length === 0 || (await tryKeep(rights, first, log));
  if (!isDone) return () => Promise.resolve();
  log.info("capabilities of this process", {
    kept: last.process.join(", ") || "none",
    ...(meanwhile.length === 0 ? {} : { meanwhile: `${meanwhile.join(", ")}, until rules of former proxies are gone` }),
    ...(last.lacking.length === 0 ? {} : { missing: last.lacking.join(", ") }),
    ...(first.lackingMeanwhile.length === 0 ? {} : { missingMeanwhile: first.lackingMeanwhile.join(", ") }),
    ...(others.length === 0 ? {} : { others: `${FILE_RIGHT} is kept for ${others.join(", ")}` }),
  });
  return async () => {
    if (meanwhile.length > 0) await tryKeep(rights, last, log);
  };
}

async function tryKeep(rights: ProcessRights, { process, children }: RightsChoice, log: Log): Promise<boolean> {
  try {
    await rights.keep(process, children);
    return true;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    log.warn("capabilities can't be given up", { error });
    return false;
  }
}

/** Those of which nobody can say that they will open: what isn't there yet may come with any permissions. */
function closedPaths({ paths, files }: RightsOptions): readonly string[] {
  return paths.filter((path) => {
    try {
      files.open(path);
      return false;
    } catch (error) {
      // A socket is no file to open: this is refused only after its permissions were found to be fine.
      return !(error instanceof Error && "code" in error && error.code === "ENXIO");
    }
  });
}

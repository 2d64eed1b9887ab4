import type { HostAccess } from "@turnout/client/daemon";
import type { Log, World } from "@turnout/core";

/** What the command touches besides its arguments; tests pass their own. */
export interface Environment {
  /** Standard output: what was asked for. */
  readonly out: (text: string) => void;
  /** Standard error: logs and errors. */
  readonly err: (text: string) => void;
  /** Standard error is a terminal, so logs are for people. */
  readonly isTerminal: boolean;
  /** Standard output is a terminal. */
  readonly isOutputTerminal: boolean;
  readonly hostname: string;
  /** As `process.platform`. */
  readonly platform: string;
  readonly version: string;
  /** Versions of the packages that the command depends on, by name. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Aborts on SIGTERM, SIGINT and SIGHUP. */
  readonly signal: AbortSignal;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Where relative backend paths and packages are looked for. */
  readonly workingDirectory: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** @throws what node:fs throws. */
  readonly readFile: (path: string) => Promise<string>;
  /** Undefined: settings of the host and rights of this process stay as they are. */
  readonly host?: Omit<HostAccess, "paths">;
  /** @throws what node:fs throws. */
  readonly writeFile: (path: string, text: string) => Promise<void>;
  readonly createWorld: (log: Log) => World;
}
